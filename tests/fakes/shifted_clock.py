"""A library that shifts the real-time clock of a process, by the seconds in a file, at any time."""

import subprocess
from pathlib import Path

_SOURCE = """
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t clock, struct timespec *now) {
    long result = syscall(SYS_clock_gettime, clock, now);
    if (clock == CLOCK_REALTIME) {
        char text[32] = {0};
        int file = open(getenv("SHIFT_FILE"), O_RDONLY | O_CLOEXEC);
        if (file >= 0 && read(file, text, sizeof text - 1) > 0) now->tv_sec += atol(text);
        close(file);
    }
    return (int)result;
}
"""


class ShiftedClock:
    """A clock in ``folder``; processes with `environ` have it."""

    def __init__(self, folder: Path) -> None:
        source, library, self._file = folder / "clock.c", folder / "clock.so", folder / "shift"
        source.write_text(_SOURCE)
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
        self.environ = {"LD_PRELOAD": str(library), "SHIFT_FILE": str(self._file)}
        self.set(0)

    def set(self, seconds: int) -> None:
        """Shift the clock by ``seconds``."""
        temporary = self._file.with_suffix(".new")
        temporary.write_text(str(seconds))
        temporary.replace(self._file)
