"""The texts that run in a job and start the injected work (docs/attach.md)."""

from typing import Final

#: The interpreter runs this in the namespace of `__main__`, so the text must bind no name.
_OUTER: Final = """\
try:
    exec(%r, {})
except BaseException:
    pass
"""

#: Runs in the job's main thread, between two of its own instructions, and starts a thread for the
#: work. No signal handler, trace function or lock of the job's affects that thread. An exception
#: that a signal handler of the job's raises meanwhile is raised in the job afterwards.
_START: Final = """\
def run():
    import sys
    try:
        import _thread
        _thread.start_new_thread(exec, (%r, {"__name__": "_tfprof_attach"}))
    except BaseException as error:
        frame = sys._getframe(2).f_back
        if error.__traceback__.tb_next is None or frame is None:
            return
        before = sys.gettrace()
        def trace(frame, event, argument, error=error):
            sys.settrace(before)
            frame.f_trace = None
            raise error
        frame.f_trace = trace
        sys.settrace(lambda *_: None)
run()
"""

#: Runs in that thread. It executes the work in the archive of the page, writes the answer, waits
#: until the answer is read, and frees the page.
_WORK: Final = """\
import ctypes, sys, time
words = (ctypes.c_uint32 * 4).from_address({page})
words[0] = 1
if not words[1]:
    try:
        if sys.version_info < (3, 7):
            raise RuntimeError("Python " + sys.version.split()[0] + " is older than 3.7")
        import marshal, zlib
        data = marshal.loads(zlib.decompress(ctypes.string_at({page} + words[2], words[3])))
        scope = {{"__name__": "_tfprof_attach", "data": data}}
        exec(compile(data["code"], "<tfprof/attach>", "exec"), scope)
        state, answer = 2, scope.get("answer", "")
    except BaseException as error:
        state, answer = 3, type(error).__name__ + ": " + str(error)
    answer = answer.encode("utf-8", "replace")[:{answer_max}] + bytes(1)
    ctypes.memmove({page} + {answer_at}, answer, len(answer))
    words[0] = state
    until = time.monotonic() + {kept_s}
    while not words[1] and time.monotonic() < until:
        time.sleep(0.002)
stays = words[1] == 2
del words
free = ctypes.CDLL(None).munmap
free.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
stays or free({page}, {whole})
"""


def text(page: int, whole: int, answer_at: int, answer_max: int, kept_s: float) -> str:
    """Return the text for the page at the address ``page``, which has ``whole`` bytes."""
    work = _WORK.format(page=page, whole=whole, answer_at=answer_at, answer_max=answer_max, kept_s=kept_s)
    return _OUTER % (_START % work)
