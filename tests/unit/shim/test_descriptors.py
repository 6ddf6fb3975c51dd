"""Our files never get descriptors 0, 1 and 2."""

import errno
import os
import subprocess
import sys

import pytest
from tfprof.shim import descriptors

# Runs in another process, since it closes descriptors that pytest needs.
SCRIPT = """
import errno, os, sys
from tfprof.shim import descriptors
from tfprof.shim.channel import ring
closed_fds = [int(word) for word in sys.argv[1].split(",")]
for fd in closed_fds:
    os.close(fd)
problems = []
with descriptors.StandardFdsReserved():
    if os.open("/", os.O_RDONLY) < 3:
        problems.append("a low descriptor")
    for fd in closed_fds:
        try:
            os.write(fd, b"text")
            problems.append("written")
        except OSError as error:
            if error.errno != errno.EBADF:
                problems.append(str(error))
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


def test_a_descriptor_that_the_job_opens_meanwhile_is_kept(monkeypatch):
    monkeypatch.setattr(descriptors, "_LOWEST", 1 << 20)  # every opened descriptor counts as a standard one
    reserved = descriptors.StandardFdsReserved()
    monkeypatch.setattr(descriptors, "_are_standard_open", lambda: bool(reserved._placeholders))
    with reserved:
        (placeholder,) = reserved._placeholders
        null_fd = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null_fd, placeholder)
    assert os.path.samestat(os.fstat(placeholder), os.stat(os.devnull))
    os.close(placeholder)
    os.close(null_fd)


def test_a_file_that_cannot_be_opened_is_the_callers_error():
    with pytest.raises(OSError) as caught:
        descriptors.open_file("/nowhere/at/all", os.O_RDONLY)
    assert caught.value.errno == errno.ENOENT


def test_an_exception_while_descriptors_are_reserved_leaves_none_of_them_open(monkeypatch):
    monkeypatch.setattr(descriptors, "_LOWEST", 1 << 20)
    reserved = descriptors.StandardFdsReserved()

    def are_standard_open():
        if reserved._placeholders:
            raise TimeoutError("the job's")
        return False

    monkeypatch.setattr(descriptors, "_are_standard_open", are_standard_open)
    fds_before = os.listdir("/proc/self/fd")
    with pytest.raises(TimeoutError), reserved:
        pass
    assert len(os.listdir("/proc/self/fd")) == len(fds_before)
