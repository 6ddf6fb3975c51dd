"""Clocks of the shim do not follow the job's tests, which replace the functions of `time`."""

import sys
import time
from importlib.util import module_from_spec
from unittest import mock

import pytest
from tfprof.shim import clock

FROZEN = ("monotonic_ns", "time_ns", "sleep")


def test_no_name_refers_to_a_function_that_freezegun_looks_for():
    """freezegun replaces each attribute of a module that is one of these functions."""
    assert not [value for value in vars(clock).values() if value in (time.monotonic_ns, time.time_ns)]


@pytest.mark.skipif(sys.version_info < (3, 9), reason="time cannot be copied")
@pytest.mark.parametrize("name", FROZEN)
def test_an_attach_under_mocks_of_time_gets_the_original_functions(name):
    copy = module_from_spec(clock.__spec__)
    with mock.patch.object(time, name, return_value=5) as replaced:
        clock.__spec__.loader.exec_module(copy)
        first, first_real = copy.mono(), copy.real()
        copy.sleep(0.001)
        assert copy.mono() >= first + 1_000_000
        assert abs(first_real - clock.real()) < 60_000_000_000
        assert getattr(time, name) is replaced
    assert not replaced.called
