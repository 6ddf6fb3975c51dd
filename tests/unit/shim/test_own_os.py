"""The copy of `os` has the system's functions, also if it is made while a test mocks them."""

import os
import posix
import runpy
from unittest import mock

from tfprof.shim import own_os


def test_functions_that_are_replaced_at_the_import_are_the_originals() -> None:
    with mock.patch("os.open") as replacement:
        copy = runpy.run_path(own_os.__file__)["os"]
        assert os.open is replacement
    assert copy.open is posix.open
    assert copy.environ is os.environ


def test_a_mock_of_the_original_does_not_change_the_copy() -> None:
    with mock.patch("os.getpid"), mock.patch("os.path.basename"):
        assert own_os.os.getpid() == posix.getpid()
        assert own_os.os.path.basename("/a/b") == "b"
