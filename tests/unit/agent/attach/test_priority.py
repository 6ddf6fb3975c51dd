"""The priority with which a thread of another process is held."""

import os
import subprocess
import sys
from typing import Final

import pytest
from tfprof.agent.attach import priority
from tfprof.agent.processes import status_of

PRINT_PRIORITIES = """
import os, resource, sys
from tfprof.agent.attach import priority
limit, user = int(sys.argv[1]), int(sys.argv[2])
if limit != resource.getrlimit(resource.RLIMIT_NICE)[1]:
    resource.setrlimit(resource.RLIMIT_NICE, (limit, limit))
os.setgroups([])
os.setresuid(user, user, user)
print(os.getpriority(os.PRIO_PROCESS, 0))
with priority.raised():
    print(os.getpriority(os.PRIO_PROCESS, 0))
print(os.getpriority(os.PRIO_PROCESS, 0))
"""
NOBODY: Final = 65534
CAP_SYS_NICE, CAP_SYS_RESOURCE = 23, 24  # bit numbers of the capabilities


def has_capability(number: int) -> bool:
    return bool(int(status_of(os.getpid())["CapEff"], 16) >> number & 1)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root takes on another identity")
@pytest.mark.parametrize(
    ("user", "limit", "highest"), [(0, 0, -20), (NOBODY, 0, 19), (NOBODY, 1, 19), (NOBODY, 23, -3)]
)
def test_the_priority_is_the_highest_that_the_user_may_have(user: int, limit: int, highest: int) -> None:
    if not has_capability(CAP_SYS_RESOURCE if limit else CAP_SYS_NICE):
        pytest.skip("this process may not raise the limit, or its priority")
    arguments = [sys.executable, "-c", PRINT_PRIORITIES, str(limit), str(user)]
    printed = subprocess.run(arguments, capture_output=True, text=True, timeout=60, check=True).stdout
    usual, raised, restored = map(int, printed.split())
    assert (raised, restored) == (min(usual, highest), usual)


def test_the_priority_is_restored_after_an_error() -> None:
    usual = os.getpriority(os.PRIO_PROCESS, 0)
    with pytest.raises(ZeroDivisionError), priority.raised():
        1 / 0  # noqa: B018 - it raises
    assert os.getpriority(os.PRIO_PROCESS, 0) == usual
