"""Sessions of the fake TensorFlow: python quick_session.py SCENARIO, with Python 3.7 or newer."""

import inspect
import os
import signal
import sys
import traceback

from tensorflow.python.client import native, session

fake_session = session.BaseSession()


class Options:
    """A CallableOptions."""

    feed, fetch, target = ["x"], ["y"], []

    def SerializeToString(self):  # noqa: N802 - the name of protobuf
        return b""


def ready():
    print("ready", flush=True)
    sys.stdin.readline()


def runs(count=10):
    for number in range(count):
        assert fake_session.run(["y"], {"x": number}) == number + 1


def plain():
    runs()
    ready()


def wait():
    ready()
    runs()
    ready()


def callables():
    call = session.BaseSession._Callable(fake_session, Options())
    for number in range(10):
        assert call(number) == number + 1
    del call
    print(native.live_objects)
    ready()


class TracedOptions(Options):
    """A CallableOptions that requests a trace of each call."""

    def SerializeToString(self):  # noqa: N802 - the name of protobuf
        return b"\x22\x02\x08\x01"


def traced_callable():
    call = session.BaseSession._Callable(fake_session, Options())
    for number in range(3000):
        call(number)
    traced_call = session.BaseSession._Callable(fake_session, TracedOptions())
    traced_call(1)
    for number in range(3000):
        call(number)
    ready()


class OddSession(session.BaseSession):
    """A session that refuses attributes of tfprof, and raises KeyError for unknown attributes."""

    def __getattr__(self, name):
        return self.__dict__["extra"][name]

    def __setattr__(self, name, value):
        if "tfprof" in name:
            raise TypeError(name)
        super().__setattr__(name, value)


def odd():
    odd_session = OddSession()
    for number in range(10):
        assert odd_session.run(["y"], {"x": number}) == number + 1
    ready()


def errors():
    runs()
    call = session.BaseSession._Callable(fake_session, Options())
    for _ in range(10):
        call(1)
    for failure in (lambda: fake_session.run(["y"], {"bad": 1}), lambda: call("bad"), call):
        try:
            failure()
        except Exception:
            traceback.print_exc()
    sys.stderr.flush()
    print(native.live_objects["buffers"])
    ready()


def fork():
    runs()
    child = os.fork()
    runs(5)
    if child:
        print("child", child, flush=True)
        ready()
        os.kill(child, signal.SIGTERM)
        os.waitpid(child, 0)
    else:
        signal.pause()


def close_before():
    ready()
    os.closerange(3, 256)
    job_fds = [os.memfd_create("theirs") for _ in range(20)]
    runs()
    print([os.fstat(fd).st_size for fd in job_fds])
    ready()


def close_after():
    runs()
    os.closerange(3, 256)
    job_fds = [os.memfd_create("theirs") for _ in range(20)]
    runs()
    print([os.fstat(fd).st_size for fd in job_fds])
    ready()


def endless():
    print("ready", flush=True)
    while True:
        runs()


def many():
    runs(40000)
    ready()


def killed():
    runs(100)
    print("ready", flush=True)
    sys.stdin.readline()
    runs(50)
    os.kill(os.getpid(), signal.SIGKILL)


def disarm():
    original_names = [name for name in vars(session.BaseSession) if name.startswith("_call")]
    bound_method = fake_session._call_tf_sessionrun
    runs()
    ready()  # the test opens the channel here, before `disarm` closes it
    sys.modules["_tfprof.shim.core"].disarm()
    runs()
    assert bound_method(None, {"x": 1}, ["y"], [], None) == 2
    module = session.__name__.partition(".")[0]
    print(module, original_names == [name for name in vars(session.BaseSession) if name.startswith("_call")])
    print(fake_session._call_tf_sessionrun.__func__.__code__.co_filename == session.__file__)
    print([type(finder).__name__ for finder in sys.meta_path if "tfprof" in type(finder).__module__])


def describe():
    for owner, name in (
        (session.BaseSession, "_call_tf_sessionrun"),
        (session.BaseSession, "_call_tf_sessionprun"),
        (session.BaseSession._Callable, "__call__"),
        (session.BaseSession._Callable, "__init__"),
    ):
        method = getattr(owner, name)
        print(method.__qualname__, method.__module__, inspect.signature(method))
    spec = session.__spec__
    print(type(spec.loader).__name__, type(session.__loader__).__name__, spec.origin == session.__file__)
    print(
        [name for name in sys.path if "inject" in name], [name for name in sys.path_importer_cache if "inject" in name]
    )


if __name__ == "__main__":
    globals()[sys.argv[1]]()
