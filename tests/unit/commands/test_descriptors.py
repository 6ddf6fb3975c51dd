"""Descriptors are closed at once, however large the limit of their numbers is."""

import subprocess
import sys

import pytest

#: Closes all descriptors but two, from their list, or by trying every number.
SCRIPT = """
import errno, os, sys
from tfprof.commands import descriptors
null = os.open(os.devnull, os.O_RDONLY)
for number in (5, 7, 100, 199):
    os.dup2(null, number)

def is_open(fd):
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True

def list_nothing(_):
    raise OSError(errno.EMFILE, "no descriptor is left")

if sys.argv[1] == "listed":
    os.sysconf = lambda _: 1 << 30
else:
    os.sysconf = lambda _: 200
    os.listdir = list_nothing
descriptors.close_all_except(7, 100)
print([fd for fd in range(300) if is_open(fd)])
"""


@pytest.mark.parametrize("way", ["listed", "tried"])
def test_all_descriptors_but_those_kept_are_closed(way: str) -> None:
    command = [sys.executable, "-c", SCRIPT, way]
    completed = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    assert completed.stdout == "[0, 1, 2, 7, 100]\n"
