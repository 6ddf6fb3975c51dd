"""Our files never get descriptors 0, 1 and 2."""

import errno
import os
import subprocess
import sys

import pytest
from tfprof.shim import descriptors

# Runs in another process, since it closes descriptors that pytest needs.
SCRIPT = """
import os, sys
from tfprof.shim import descriptors
from tfprof.shim.channel import ring
closed_fds = [int(word) for word in sys.argv[1].split(",")]
for fd in closed_fds:
    os.close(fd)
problems = []
if descriptors.open_file("/", os.O_RDONLY) < 3:
    problems.append("a low descriptor")
for fd in closed_fds:
    try:
        os.fstat(fd)
        problems.append("left open")
    except OSError:
        pass
channel = ring.Channel(1, 1, 1 << 20)
channel.grow()
if channel._fd < 3:
    problems.append("the channel is %d" % channel._fd)
os._exit(len(problems))
"""


@pytest.mark.parametrize("closed_fds", ["0", "1", "2", "0,1,2", "0,2"])
def test_closed_descriptors_stay_closed_for_the_job(closed_fds):
    assert subprocess.run([sys.executable, "-c", SCRIPT, closed_fds], check=False, timeout=60).returncode == 0


def test_a_file_that_cannot_be_opened_is_the_callers_error():
    with pytest.raises(OSError) as caught:
        descriptors.open_file("/nowhere/at/all", os.O_RDONLY)
    assert caught.value.errno == errno.ENOENT


def test_an_exception_while_a_descriptor_is_moved_leaves_none_open(monkeypatch):
    def raise_timeout(*_arguments):
        raise TimeoutError("the job's")

    monkeypatch.setattr(descriptors, "_LOWEST", 1 << 20)  # every opened descriptor counts as a standard one
    monkeypatch.setattr("tfprof.shim.descriptors.control", raise_timeout)
    fds_before = os.listdir("/proc/self/fd")
    with pytest.raises(TimeoutError):
        descriptors.open_file(os.devnull, os.O_RDONLY)
    assert len(os.listdir("/proc/self/fd")) == len(fds_before)
