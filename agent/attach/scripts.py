"""The scripts that run in a job and start the injected work (docs/attach.md).

A work area is described in work_area.py.
"""

from typing import Final

#: Offset of the answer in a work area, and its maximum length (bytes).
ANSWER_AT: Final = 16
ANSWER_MAX: Final = 4096 - ANSWER_AT - 1
#: Time limit for reading the answer (seconds); after it the job frees the work area.
_ANSWER_TIMEOUT_S: Final = 30.0

#: The interpreter runs this script in the namespace of `__main__`, so it must bind no name.
_OUTER_SCRIPT: Final = """\
try:
    exec(%r, {})
except BaseException:
    pass
"""

#: Runs in the job's main thread, between two of the job's own instructions, and starts a thread for
#: the work. No signal handler, trace function or lock of the job's affects the new thread, nor does
#: a debugger: pydevd replaces the function that starts it, and keeps the original. The garbage
#: collector is off until the work is done: a finalizer of the job's could run in the new thread. If
#: the garbage collector was on, `enable_calls` has the arguments of the call that turns it on
#: again. Until then, forked children make this call, too, since the new thread does not exist
#: there. Their function is registered once in a process (shim/process_events.py). After the work,
#: the new thread makes these calls and those that the work has put into `last_calls`, and ends. It
#: makes them in C and runs no other Python code. An exception that a signal handler of the job's
#: raises meanwhile is raised in the job afterwards.
_START_SCRIPT: Final = """\
def run():
    import sys
    try:
        import _thread, gc, itertools, posix
        enable_calls, last_calls = [()] if gc.isenabled() else [], []
        child = vars(posix).setdefault("_tfprof_calls", {}).setdefault("child", {"calls": [], "handlers": []})
        calls = child["calls"]
        if "run" not in child and hasattr(posix, "register_at_fork"):
            in_child = type(run)(compile("[call() for call in calls[:]]", "<tfprof/attach>", "exec"), child)
            posix.register_at_fork(after_in_child=in_child)
            child["run"] = in_child
        removing = itertools.starmap(calls.remove, [(gc.enable,)] * len(enable_calls))
        calls += [gc.enable] * len(enable_calls)
        work = map(exec, (%r,), ({"enable_calls": enable_calls, "last_calls": last_calls},))
        enabling = itertools.starmap(gc.enable, enable_calls)
        try:
            gc.disable()
            last = itertools.chain.from_iterable(last_calls)
            start = getattr(_thread, "_original_start_new_thread", _thread.start_new_thread)
            start(any, (itertools.chain(work, removing, enabling, last),))
        except BaseException:
            any(itertools.chain(removing, enabling))
            raise
    except BaseException as error:
        frame = sys._getframe(2).f_back
        if error.__traceback__.tb_next is None or frame is None:
            return
        previous_trace = sys.gettrace()
        def trace(frame, event, argument, error=error):
            sys.settrace(previous_trace)
            frame.f_trace = None
            raise error
        frame.f_trace = trace
        sys.settrace(lambda *_: None)
run()
"""

#: Runs in the new thread. Work that cannot begin, as without `ctypes`, prints nothing in the job.
_THREAD_SCRIPT: Final = """\
try:
    exec(%r)
except BaseException:
    pass
"""

#: The work, between the reading of the work area and the writing of the answer.
_WORK: Final = """\
    try:
        if sys.version_info < (3, 7):
            raise RuntimeError("Python " + sys.version.split()[0] + " is older than 3.7")
        import marshal, zlib
        data = marshal.loads(zlib.decompress(archive))
        scope = {"__name__": "_tfprof_attach", "data": data}
        exec(compile(data["code"], "<tfprof/attach>", "exec"), scope)
        state, answer = 2, scope.get("answer", "")
    except BaseException as error:
        state, answer = 3, type(error).__name__ + ": " + str(error)
"""

#: The work area is memory of the job. The script executes the work in the archive, writes the
#: answer, waits until the answer is read, and frees the work area. If the answer is not read within
#: five seconds, the attaching process was stopped or killed, and the script turns the garbage
#: collector on again. After ``answer_timeout_s`` it frees the work area all the same. When the
#: attaching process finds the work area freed, the garbage collector is on again, if it was on
#: before. The functions of `time` are not used, since tests and gevent replace them. The call of
#: `munmap` makes no object that is subject to garbage collection; the conversion of arguments by
#: `argtypes` would.
_IN_MEMORY: Final = """\
import ctypes, gc, itertools, sys
words = (ctypes.c_uint32 * 4).from_address({area})
words[0] = 1
if not words[1]:
    archive = ctypes.string_at({area} + words[2], words[3])
{work}
    answer = answer.encode("utf-8", "replace")[:{answer_max}] + bytes(1)
    ctypes.memmove({area} + {answer_at}, answer, len(answer))
    words[0] = state
    usleep = ctypes.CDLL(None).usleep
    for turn in range(int({answer_timeout_s} / 0.002)):
        if words[1]:
            break
        usleep(2000)
        if enable_calls and turn > 5 / 0.002:
            gc.enable(*enable_calls.pop())
stays_mapped = words[1] == 2
del words
region = ctypes.c_void_p({area}), ctypes.c_size_t({mapped_size})
stays_mapped or last_calls.append(itertools.starmap(ctypes.PyDLL(None).munmap, (region,)))
"""

#: The work area is a file. The script reads and writes the file, and does not access it through a
#: mapping, since a job dies if it accesses a mapped file that was truncated. The mapping only shows
#: the attaching process that the work still runs. When that process finds the file unmapped, the
#: garbage collector is on again, if it was on before.
_IN_FILE: Final = """\
import itertools, mmap, struct, sys
with open({path!r}, "rb+", 0) as file:
    mapping = mmap.mmap(file.fileno(), 0, **{{"trackfd": False}} if sys.version_info >= (3, 13) else {{}})
    last_calls.append(itertools.starmap(mapping.close, ((),)))
    area = file.read()
    file.seek(0)
    file.write(bytes([1]))
_, is_released, offset, size = struct.unpack_from("<IIII", area)
if not is_released:
    archive = area[offset : offset + size]
{work}
    with open({path!r}, "rb+", 0) as file:
        file.seek({answer_at})
        file.write(answer.encode("utf-8", "replace")[:{answer_max}] + bytes(1))
        file.seek(0)
        file.write(bytes([state]))
"""


def in_memory(area: int, mapped_size: int) -> str:
    """Return the script for the work area at ``area``, which has ``mapped_size`` bytes."""
    return _filled(_IN_MEMORY, area=area, mapped_size=mapped_size, answer_timeout_s=_ANSWER_TIMEOUT_S)


def in_file(path: str) -> str:
    """Return the script for the work area in the file ``path``."""
    return _filled(_IN_FILE, path=path)


def _filled(script: str, **values: object) -> str:
    work = script.format(**values, answer_at=ANSWER_AT, answer_max=ANSWER_MAX, work=_WORK)
    return _OUTER_SCRIPT % (_START_SCRIPT % (_THREAD_SCRIPT % work))
