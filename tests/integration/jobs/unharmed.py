"""Scenarios that a trace must not disturb: python unharmed.py SCENARIO exits with status 7."""

import gc
import os
import signal
import sys
import tempfile
import threading
import weakref

import tensorflow as tf

# A child that is forked from a process with TensorFlow's threads can hang, also without tfprof.
X = None if sys.argv[1] == "children" else tf.ones((16, 16))


@tf.function
def call(x):
    return tf.matmul(x, x)


class Holder:
    """An object in a cycle; its finalizer closes its files."""

    def __init__(self, folder, number):
        self.me = self
        self.path = os.path.join(folder, str(number))
        self.file = open(self.path + ".text", "w")  # noqa: SIM115 - the finalizer closes it
        self.file.write("x" * 100)
        self.fd = os.open(self.path + ".bytes", os.O_CREAT | os.O_WRONLY)

    def __del__(self):
        os.write(self.fd, b"y" * 10)
        os.close(self.fd)
        self.file.close()


def finalizers():
    """All files are complete, and no descriptor stays open."""
    gc.set_threshold(50)
    folder, before = tempfile.mkdtemp(), len(os.listdir("/proc/self/fd"))
    for number in range(500):
        Holder(folder, number)
        call(X)
    gc.collect()
    sizes = [os.path.getsize(os.path.join(folder, name)) for name in os.listdir(folder)]
    print(sizes.count(100), sizes.count(10), len(sizes), len(os.listdir("/proc/self/fd")) - before)


def deleted():
    """Functions and their variables are freed when the job drops them."""
    references = []
    for _ in range(6):
        variable = tf.Variable(X)
        function = tf.function(lambda x, variable=variable: x * variable)
        for _ in range(4):
            function(X)
        references += [weakref.ref(function), weakref.ref(variable)]
        del function, variable
    print([reference() is None for reference in references].count(True))


def daemon():
    """The interpreter ends while a daemon thread is in a step."""
    threading.Thread(target=lambda: [call(X) for _ in iter(int, 1)], daemon=True).start()
    threading.Event().wait(0.5)


def eager():
    """Ops after a few calls add no thread.

    A thread of TensorFlow may end meanwhile.
    """
    for _ in range(5):
        call(X)
    before = threading.active_count(), tasks()
    for _ in range(1000):
        X + 1
    print(threading.active_count() - before[0], max(0, tasks() - before[1]))


def tasks():
    return len(os.listdir("/proc/self/task"))


def descriptors():
    """Descriptors 0, 1 and 2 stay closed while the job runs."""
    out = os.dup(1)
    for fd in range(3):
        os.close(fd)
    for _ in range(20):
        call(X)
    os.write(out, b"%d\n" % os.open(os.devnull, os.O_RDONLY))
    os._exit(7)


def sessions():
    """The job starts profiler sessions while another thread calls a function."""
    stop = threading.Event()
    calls = threading.Thread(target=lambda: [call(X) for _ in iter(stop.is_set, True)])
    calls.start()
    options = tf.profiler.experimental.ProfilerOptions(host_tracer_level=0)
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(50):
            stop.wait(0.005)
            tf.profiler.experimental.start(folder, options)
            tf.profiler.experimental.stop(save=False)
    stop.set()
    calls.join()


def children():
    """Forked children call a function, then exit without cleanup or are killed."""
    for number in range(4):
        pid = os.fork()
        if pid == 0:
            function = tf.function(lambda x: tf.matmul(x, x))
            for _ in range(11):
                function(tf.ones((16, 16)))
            if number % 2:
                os.kill(os.getpid(), signal.SIGKILL)
            os._exit(0)
        print(os.waitpid(pid, 0)[1])


globals()[sys.argv[1]]()
sys.exit(7)
