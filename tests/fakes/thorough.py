"""Tests that `make test` leaves out, and `make test-thorough` runs.

They repeat what another test shows, with another version or more samples.
"""

from fnmatch import fnmatchcase
from typing import Final

#: Patterns of the ids of tests, without the folder; a bracket is a character, not a set.
PATTERNS: Final = (
    "test_attach.py::test_losses_equal*[tf1-fit]",
    "test_attach.py::test_losses_equal*[tf2-session]",
    "test_attach.py::test_losses_equal*[tf2-function]",
    "test_attach.py::test_losses_equal*[tf2-tape]",
    "test_attach.py::test_the_command_does_not_wait*[function-*",
    "test_attach.py::test_the_command_does_not_wait*[tape-*",
    "test_child_processes.py::*[fork-exit-50-tf1_python]",
    "test_child_processes.py::*[forkserver-kill-2-tf1_python]",
    "test_child_processes.py::*[preloaded-forkserver-kill-20-tf1_python]",
    "test_child_processes.py::*[spawn-kill-2-tf1_python]",
    "test_doc_pages.py::test_the_commands*[slow-step]",
    "test_doc_pages.py::test_the_commands*[since-when]",
    "test_comparison.py::test_of_many_pairs_of_equal_runs*",
    "test_comparison.py::test_the_visible_change_is_found*",
    "test_dump_steps.py::*[tf1]",
    "test_eager_steps.py::test_without_the_c_part*[tf2-callable-*",
    "test_eager_steps.py::test_without_the_c_part*[tf2-concrete-*",
    "test_file_size_limit.py::*[2000]",
    "test_float_ops_jobs.py::test_a_handwritten_loop*[tf_keras-*",
    "test_float_ops_jobs.py::test_padding*-tf_keras]",
    "test_handlers.py::test_the_job_sees_each_exception_once[3.7.*-timer]",
    "test_handlers.py::test_the_job_sees_each_exception_once[3.7.*-outside]",
    "test_orders.py::test_exactly_the_next_steps*[tf1-*",
    "test_orders.py::test_an_order_names_the_first_step*[tf1-*",
)


def is_thorough(nodeid: str) -> bool:
    """Return whether the test with this id is one of those."""
    name = nodeid.rpartition("/")[2]
    return any(fnmatchcase(name, pattern.replace("[", "[[]")) for pattern in PATTERNS)
