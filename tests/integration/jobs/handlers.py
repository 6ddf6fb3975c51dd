"""Raises exceptions at the lines of the shim; prints those that the job does not see exactly once.

    python handlers.py SHIM I/N handler|timer|outside

A case is one entry into the shim with one exception at one line, in a forked child. SHIM is the
folder of the shim. I/N selects every N-th line from the I-th on. The exception comes from a signal
handler at the line (``handler``), from a timer's handler soon after (``timer``), or from the C
interface as if from another thread (``outside``).
"""

import _signal
import _thread
import builtins
import collections
import contextlib
import ctypes
import dis
import fcntl  # noqa: F401 - the shim imports these late; each child inherits them
import functools
import gc
import inspect  # noqa: F401
import io
import itertools
import json
import opcode  # noqa: F401
import os
import re
import runpy
import sys
import traceback
import types
import warnings

import handler_state

#: Beginning of the names of the shim's files.
SHIM_PREFIX = "<tfprof/"
ALARM = _signal.SIGALRM
MAIN_THREAD = ctypes.c_ulong(__import__("threading").get_ident())
#: Arguments of the exceptions that need more than a text.
EXCEPTION_ARGUMENTS = {
    "UnicodeDecodeError": ("utf-8", b"x", 0, 1, "theirs"),
    "UnicodeEncodeError": ("utf-8", "x", 0, 1, "theirs"),
    "UnicodeTranslateError": ("x", 0, 1, "theirs"),
    "ExceptionGroup": ("theirs", [ValueError("theirs")]),
    "BaseExceptionGroup": ("theirs", [KeyboardInterrupt("theirs")]),
}
#: The usual exception of an alarm. It is an OSError, which many `except` clauses of the shim catch.
#: It is raised at every selected line, while the other exceptions take turns.
ALARM_ERROR = TimeoutError
TIMER_DELAY_S = 0.00002
#: File and name of the shim's finalizer that replaces a finalizer of TensorFlow.
REPLACED_FINALIZER = ("<tfprof/callables.py>", "__del__")
#: Folders of the job's code, and files of the import system, which handles some errors itself.
OTHER_PREFIXES = (
    "<frozen importlib",
    "<frozen zipimport",
    os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))),
)
WINDOW_S = 0.05  # time limit of a window, reached if its step was interrupted
UNSAMPLED_STEPS = 600  # number of steps after which most short steps are only counted
#: Result of a case whose exception did not come at a line of the shim, because of a race or a late
#: timer.
MISSED = "not at a line of the shim"


class JobsOwnError(Exception):
    """An error that the job raises and catches itself."""


def exception_classes():
    """Return all built-in exceptions."""
    exceptions = [
        value for value in vars(builtins).values() if isinstance(value, type) and issubclass(value, BaseException)
    ]
    return sorted(set(exceptions), key=lambda cls: cls.__name__)


def arm(trace):
    """Arm the shim in this process, as the injected file does."""
    core = sys.modules["_tfprof.shim.core"]
    os.environ["TFPROF_TRACE"] = trace
    sys.modules["_tfprof.shim.arming"].arm(os.environ)
    return core


# -- entries into the shim: each prepares, and returns the function that runs with exceptions ------

follow_ups = []  # (step, number of steps that it counts): what runs after the exception


def arming():
    """Arm after the session's module was loaded."""
    import tensorflow.python.client.session  # noqa: F401

    return lambda: arm("all")


def importing():
    """Import the session's module, which patches it and makes the channel."""
    arm("all")
    return lambda: __import__("tensorflow.python.client.session")


def session(trace):
    """Arm the shim with the policy ``trace``; return a session with a graph of one op."""
    arm(trace)
    from tensorflow.python.client.session import BaseSession

    base_session = BaseSession()
    shape = types.SimpleNamespace(ndims=1, as_list=lambda: [None])
    frame = types.SimpleNamespace(filename="job.py", lineno=1, name="main")
    op = types.SimpleNamespace(name="op", outputs=[types.SimpleNamespace(shape=shape)], traceback=[frame])
    base_session.graph.get_operations = lambda: [op]
    base_session.graph.version = 1
    follow_ups.append((lambda: base_session.run(["a"], {"x": 1}), 1))
    return base_session


def first_run():
    """Run the first traced step, which makes the ring and sends the graph."""
    base_session = session("all")
    return lambda: base_session.run(["a"], {"x": 1})


def own_metadata():
    """Run a step with the job's own RunMetadata."""
    base_session = session("all")
    base_session.run(["a"], {"x": 1})
    return lambda: base_session.run(["a"], {"x": 1}, b"\x08\x01", [])


def plain_runs():
    """Run steps that are not traced."""
    base_session = session("off")

    def runs():
        for _ in range(3):
            base_session.run(["a"], {"x": 1})
        base_session._call_tf_sessionprun("handle", {"x": 1}, ["a"])

    return runs


class Options:
    """The part of CallableOptions that the shim reads."""

    feed = fetch = (1,)
    target = ()

    def SerializeToString(self):  # noqa: N802 - the name of protobuf
        """Return the bytes."""
        return b"\x0a\x01x"


def callables():
    """Make, call and drop a callable of a session."""
    base_session = session("all")

    def use():
        call = base_session._Callable(base_session, Options())
        call(1)
        del call
        gc.isenabled()

    return use


def eager(trace="off"):
    """Return the patched modules (functions, keras) of the fake eager TensorFlow."""
    from fakes import eager_tensorflow

    core = arm(trace)
    patch = types.SimpleNamespace(setitem=lambda table, name, value: table.__setitem__(name, value))
    _, functions, module = eager_tensorflow.install(patch)
    for name in ("keras", "function", "recording"):
        __import__("_tfprof.shim.tensorflow." + name)
    sys.modules["_tfprof.shim.tensorflow.keras"].patch_callbacks(module)
    sys.modules["_tfprof.shim.tensorflow.keras"].patch_models(module)
    sys.modules["_tfprof.shim.tensorflow.function"].patch(functions)
    assert core._ensure_channel()
    window = sys.modules["_tfprof.shim.steps.window"]
    window._FIRST_DURATION_MAX_S = window.DURATION_MAX_S = WINDOW_S
    return functions, module


def fitting():
    """Fit for two epochs with an evaluation in each, after the channel was made."""
    _, module = eager()
    model = module.Model()
    follow_ups.append((lambda: model.fit(module.CallbackList(model), calls=2, validation_calls=1), 6))
    return lambda: model.fit(module.CallbackList(model), epochs=2, calls=2, validation_calls=1)


def failing():
    """Fit until the job's own exception, which also frees the list of callbacks."""
    _, module = eager()
    model = module.Model()
    follow_ups.append((lambda: model.fit(module.CallbackList(model), calls=2, validation_calls=1), 6))

    def work():
        raise JobsOwnError

    def fit():
        with contextlib.suppress(JobsOwnError):
            model.fit(module.CallbackList(model), work=work)
        gc.isenabled()
        gc.isenabled()

    return fit


def collecting():
    """Collect garbage, whose time the shim records."""
    eager()

    def collect():
        gc.collect(0)
        gc.isenabled()
        gc.isenabled()

    return collect


def functions():
    """Call functions alone and as batches of `train_on_batch`."""
    tf_functions, module = eager()
    step, model = tf_functions.Function("step"), module.Model()
    follow_ups.extend([(step, 1), (lambda: model.train_on_batch(step), 1)])

    def calls():
        step()
        model.train_on_batch(step)
        step()

    return calls


def start_and_wait(function, args, start=_thread.start_new_thread):
    """Start a thread and wait until it runs.

    Before it runs, Python registers the new thread with the id of the starting thread, and gives
    the new thread the exceptions that are set for the starting thread.
    """
    running = _thread.allocate_lock()
    running.acquire()
    start(function, (itertools.chain(itertools.starmap(running.release, [()]), *args),))
    running.acquire()


def patch_recording(profiler):
    """Let ``profiler`` record the steps, with threads as in `start_and_wait`."""
    recording = sys.modules["_tfprof.shim.tensorflow.recording"]
    recording._start_thread = start_and_wait
    recording.patch(profiler)


def profiled_functions():
    """Return the patched modules of the fake eager TensorFlow, whose steps are recorded."""
    tf_functions, _ = eager("all")
    profiler = sys.modules["tensorflow.python.profiler.internal._pywrap_profiler"]
    patch_recording(profiler)
    return tf_functions, profiler


def windows():
    """Call functions whose steps a profiler session records; the second one fails."""
    tf_functions, _ = profiled_functions()
    error = JobsOwnError()

    def fails():
        raise error

    good, bad = tf_functions.Function("good"), tf_functions.Function("bad", fails)
    follow_ups.append((good, 1))

    def calls():
        good()
        with contextlib.suppress(JobsOwnError):
            bad()
        good()

    return calls


def own_session():
    """Let the job start a profiler session while a window is open."""
    tf_functions, profiler = profiled_functions()
    sessions = []

    def start():
        sessions.append(profiler.ProfilerSession())
        sessions[-1].start("folder", {})

    step = tf_functions.Function("step", start)
    follow_ups.append((tf_functions.Function("other"), 1))

    def calls():
        step()
        sessions.clear()

    return calls


def batches():
    """Count batches that are session runs; the second one fails."""
    _, module = eager()
    module.Model._standardize_user_data = None
    sys.modules["_tfprof.shim.tensorflow.keras"].patch_models(module)
    model = module.Model()
    for _ in range(UNSAMPLED_STEPS):
        model.train_on_batch(int)
    follow_ups.append((lambda: model.train_on_batch(int), 1))

    def fails():
        raise JobsOwnError

    def run_batches():
        model.train_on_batch(int)
        with contextlib.suppress(JobsOwnError):
            model.train_on_batch(fails)
        model.train_on_batch(int)

    return run_batches


def forking():
    """Fork, and run a step in the child."""
    base_session = session("off")
    base_session.run(["a"], {"x": 1})

    def fork():
        pid = os.fork()
        if pid:
            os._exit(os.WEXITSTATUS(os.waitpid(pid, 0)[1]))
        base_session.run(["a"], {"x": 1})

    return fork


def tape_step(trace):
    """Return (a function that runs a training step of eager ops, the class of its tape)."""
    from fakes import eager_tensorflow

    eager(trace)
    backprop = eager_tensorflow.tape_module()
    patches = sys.modules["_tfprof.shim.tensorflow.eager_steps"]
    patches.patch_tape(backprop)
    patches.patch_optimizer(backprop)
    optimizer = backprop.Optimizer()

    def step(work=int):
        with backprop.GradientTape() as tape:
            work()
        optimizer.apply_gradients(tape.gradient())

    follow_ups.append((step, 1))
    return step, backprop.GradientTape


def tapes():
    """Run training steps: counted, failed and without an optimizer."""
    step, tape = tape_step("off")

    def fails():
        raise JobsOwnError

    def run_steps():
        step()
        with contextlib.suppress(JobsOwnError):
            step(fails)
        with tape() as unused:
            pass
        unused.gradient()
        del unused
        step()

    return run_steps


def traced_tapes():
    """Run training steps that are traced."""
    step, _ = tape_step("all")
    profiler = sys.modules["tensorflow.python.profiler.internal._pywrap_profiler"]
    patch_recording(profiler)
    return step


def give_order(**values):
    """Write an order into the channel, as the agent does."""
    words, number = handler_state.channel().words, sys.modules["_tfprof.formats.layout"].WORD
    for name, value in [("policy_writing", 1), *values.items(), ("policy_writing", 0)]:
        words[number[name]] = value
    words[number["policy"]] += 1


def orders():
    """Read an order at a step, trace under it until it ends; read an invalid one."""
    base_session = session("off")
    base_session.run(["a"], {"x": 1})
    all_mode = sys.modules["_tfprof.formats.layout"].MODE_ALL

    def runs():
        give_order(policy_mode=all_mode, policy_count=2)
        for _ in range(4):
            base_session.run(["a"], {"x": 1})
        give_order(policy_mode=99)
        base_session.run(["a"], {"x": 1})

    return runs


def detaching():
    """Read the order to detach at a step."""
    base_session = session("all")
    base_session.run(["a"], {"x": 1})
    restored_classes.append(type(base_session))

    def runs():
        give_order(detach=1)
        base_session.run(["a"], {"x": 1})
        base_session.run(["a"], {"x": 1})

    return runs


def attaching():
    """Arm this process from source texts, as `tfprof attach` does; run a step, and disarm."""
    import tensorflow.python.client.session as module

    base_session, act = module.BaseSession(), attach_action()
    follow_ups.append((lambda: base_session.run(["a"], {"x": 1}), 1))
    restored_classes.append(module.BaseSession)

    def run_attached():
        act("arm")
        base_session.run(["a"], {"x": 1})
        act("disarm")
        base_session.run(["a"], {"x": 1})

    return run_attached


def attach_action():
    """Return a function to arm or disarm this process, as the commands do with a running job."""
    root = os.path.dirname(sys.modules["_tfprof.shim"].__path__[0])
    sources = {}
    for folder in ("formats", "shim", "shim/channel", "shim/cpython", "shim/pacing", "shim/steps", "shim/tensorflow"):
        for name in os.listdir(os.path.join(root, folder)):
            if name.endswith(".py") and name not in ("__init__.py", "attached.py"):
                with open(os.path.join(root, folder, name)) as file:
                    sources[folder + "/" + name] = file.read()
    with open(os.path.join(root, "shim/attached.py")) as file:
        names = {"__name__": "_tfprof_attach"}
        exec(compile(file.read(), SHIM_PREFIX + "attached.py>", "exec"), names)
    request = {"sources": sources, "compiled": b"", "environ": {**os.environ, "TFPROF_TRACE": "off"}}
    return lambda action: names["act"]({**request, "action": action, "launch": armed_launch()})


def armed_launch():
    """Return the launch that armed this process, None if it is not armed."""
    core = sys.modules.get("_tfprof.shim.core")
    state = core and core.state()
    return state and state.launch


#: The files of the shim whose lines are tried in `attaching`. That entry also loads modules, whose
#: lines are not tried there.
ATTACHING_FILES = (SHIM_PREFIX + "attached.py>", SHIM_PREFIX + "hook.py>")

ENTRIES = (
    arming,
    importing,
    first_run,
    own_metadata,
    plain_runs,
    callables,
    fitting,
    failing,
    collecting,
    functions,
    windows,
    own_session,
    batches,
    forking,
    tapes,
    traced_tapes,
    orders,
    detaching,
    attaching,
)

# -- one case --------------------------------------------------------------------------------------

callback_codes = []  # code of callbacks; Python drops exceptions in them before their ``try``
raised_errors = []  # the exception that the case raised
restored_classes = []  # classes of the job that must be unpatched once the shim is disarmed


def new_exception(cls):
    """Return an instance of ``cls``."""
    return cls(*EXCEPTION_ARGUMENTS.get(cls.__name__, ("theirs",)))


def handler_of(cls):
    """Return a signal handler that removes itself and raises, like the handler of a timeout."""

    def handler(_number, _frame):
        _signal.signal(ALARM, _signal.SIG_IGN)
        raised_errors.append(new_exception(cls))
        raise raised_errors[0]

    return handler


def drops_exceptions(frame):
    """Return whether Python drops exceptions in ``frame``, because a finalizer is running."""
    while frame is not None:
        if frame.f_code.co_name == "__del__":
            return True
        frame = frame.f_back
    return False


def is_before_try(code, line):
    """Return whether ``line`` precedes the ``try`` of a callback or a finalizer.

    No signal handler runs there. A trace function does, but Python drops its exception.
    """
    return (code in callback_codes or code.co_name == "__del__") and line <= code.co_firstlineno + 1


def is_handled(error, printed):
    """Return whether the job or Python handled ``error``, as they do without the shim.

    ``printed`` is Python's message about an error that it ignores.
    """
    if error.__traceback__ is not None:  # begins at the frame that handled it
        code = error.__traceback__.tb_frame.f_code
        place = code.co_filename, code.co_name
    else:  # ignored by Python 3.7
        place = next(iter(re.findall(r'File "(.*)", line \d+, in (.*)', printed)), ("", ""))
    return place == REPLACED_FINALIZER or place[0].startswith(OTHER_PREFIXES)


def at_line(number, act):
    """Call ``act`` at the ``number``-th line of the shim from now on; return the line counter.

    Under "lines" the counter has the number of lines that have run. Under each (file, line) it has
    that number at the first run of the line.
    """
    count = collections.Counter()

    def local(frame, event, arg):
        is_skipped = is_before_try(frame.f_code, frame.f_lineno)
        place = frame.f_code.co_filename, frame.f_lineno
        del frame, arg
        if event == "line" and not is_skipped:
            count["lines"] += 1
            count.setdefault(place, count["lines"])
            if count["lines"] == number:
                sys.settrace(None)
                act()
        return local

    def tracer(frame, _event, _arg):
        return local if frame.f_code.co_filename.startswith(SHIM_PREFIX) and not drops_exceptions(frame) else None

    sys.settrace(tracer)
    return count


RAISE_BY = {
    "handler": lambda _cls: os.kill(os.getpid(), ALARM),
    "timer": lambda _cls: _signal.setitimer(_signal.ITIMER_REAL, TIMER_DELAY_S),
    "outside": lambda cls: ctypes.pythonapi.PyThreadState_SetAsyncExc(MAIN_THREAD, ctypes.py_object(cls)),
}


def case(entry, number, cls, way):
    """Run ``entry`` with ``cls`` raised at line ``number``; return the error, "" for none."""
    run = entry()
    before = handler_state.ProcessState()
    caught = count = None
    sys.stderr = io.StringIO()
    _signal.signal(ALARM, handler_of(cls))
    try:
        count = at_line(number, lambda: RAISE_BY[way](cls))
        run()
        sys.settrace(None)
        if way == "timer" and count["lines"] >= number:
            for _ in range(100000000):
                if raised_errors:
                    break
    except BaseException as error:
        caught = error
    sys.settrace(None)
    if caught is None and count is not None and count["lines"] < number:
        return MISSED
    problem = difference(caught, cls, way)
    del caught
    if problem and way == "timer" and raised_errors and is_handled(raised_errors[0], sys.stderr.getvalue()):
        return MISSED
    return problem or (leftovers(entry, before) if way == "handler" and cls is ALARM_ERROR else "")


def leftovers(entry, before):
    """Return what is not as before; "" for nothing."""
    leaves_descriptor = handler_state.is_before_release(raised_errors[0])
    raised_errors.clear()
    gc.collect()  # tracing leaves copies of local variables in the frames, which refer to exceptions
    problems = list(handler_state.uncounted(follow_ups))
    handler_state.expire(follow_ups)
    problems += handler_state.leftovers()
    # If the job starts a profiler session, tfprof drops the session of its window. The log of the
    # dropped session may stay open.
    if not leaves_descriptor and entry is not own_session:
        problems += before.changes()
    if handler_state.channel() is None:
        names = [f"{owner.__name__}.{name}" for owner in restored_classes for name in patched_names(owner)]
        problems += [f"patched: {name}" for name in names]
    return ", ".join(problems)


def patched_names(owner):
    """Return the names of functions of ``owner`` that the shim has replaced."""
    return [
        name
        for name, value in vars(owner).items()
        if SHIM_PREFIX in getattr(getattr(value, "__code__", None), "co_filename", "")
    ]


def difference(caught, cls, way):
    """Return what is wrong with ``caught``, the exception that the job saw; "" for nothing."""
    if isinstance(caught, RuntimeError) and isinstance(caught.__cause__, StopIteration):
        caught = caught.__cause__  # Python replaces a StopIteration in a generator
    while caught not in raised_errors and type(caught) is not cls and caught is not None and not is_ours(caught):
        caught = caught.__context__  # e.g. of a ``finally`` that uses a variable not yet set
    if way == "outside":
        return "" if type(caught) is cls else f"{caught!r} instead of {cls.__name__}"
    if raised_errors and caught is raised_errors[0]:
        return ""
    tracebacks = [traceback.extract_tb(error.__traceback__) for error in raised_errors]
    lines = [(f.filename, f.lineno) for frames in tracebacks for f in frames] or sys.stderr.getvalue()
    return f"{caught!r} instead of {raised_errors}, by way of {lines}"


def is_ours(error):
    """Return whether ``error`` was raised at a line of the shim."""
    trace = error.__traceback__
    while trace.tb_next is not None:
        trace = trace.tb_next
    return trace.tb_frame.f_code.co_filename.startswith(SHIM_PREFIX)


def start_child(work):
    """Run ``work``, which returns a string, in a forked child; return (pid, reader)."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(writer, work().encode() or b".")
        except BaseException as error:
            os.write(writer, repr(error).encode())
        os._exit(0)
    os.close(writer)
    return pid, reader


def result_of(child):
    """Wait for ``child`` and return the string of its work."""
    pid, reader = child
    with open(reader) as file:
        text = file.read()
    os.waitpid(pid, 0)
    return "" if text == "." else text or "no result"


def run_all(cases):
    """Yield (name, error) for each (name, work) of ``cases``; each CPU has one running case."""
    running = collections.deque()
    for name, work in cases:
        running.append((name, start_child(work)))
        if len(running) >= len(os.sched_getaffinity(0)):
            oldest_name, child = running.popleft()
            yield oldest_name, result_of(child)
    for name, child in running:
        yield name, result_of(child)


def lines_of(entry):
    """Return [number, file, line] of the first run of each line of the shim by ``entry``."""

    def work():
        run = entry()
        count = at_line(0, None)
        run()
        sys.settrace(None)
        return json.dumps([[number, *place] for place, number in count.items() if place != "lines"])

    return json.loads(result_of(start_child(work)))


def is_call_of_the_job(file, line):
    """Return whether the line calls code of the job, which an error set there seems to be from.

    The exception begins in the trace function of these tests, which is such code.
    """
    code = sys.modules["_tfprof.shim.guard"].of_job.__code__
    return file == code.co_filename and line in (number for _, number in dis.findlinestarts(code))


def cases_of(first, interval, other_exceptions, way):
    """Yield (name, work) of two exceptions at every ``interval``-th line from the ``first`` on.

    One exception is ALARM_ERROR, the other is the next of ``other_exceptions``.
    """
    known_places = set()
    for entry in ENTRIES:
        for number, *place in lines_of(entry):
            if tuple(place) in known_places or (entry is attaching and place[0] not in ATTACHING_FILES):
                continue
            known_places.add(tuple(place))
            if len(known_places) % interval != first or (way == "outside" and is_call_of_the_job(*place)):
                continue
            for cls in (ALARM_ERROR, other_exceptions[len(known_places) % len(other_exceptions)]):
                yield (entry.__name__, *place, cls.__name__), functools.partial(case, entry, number, cls, way)


def modules_of(shim):
    """Yield the names of the shim's modules; those that a job loads late are loaded early here."""
    for folder in (".", "channel", "cpython", "pacing", "steps", "tensorflow"):
        for name in sorted(os.listdir(os.path.join(shim, folder))):
            if name.endswith(".py") and name not in ("__init__.py", "attached.py"):
                yield (folder + "." + name[: -len(".py")]).lstrip(".")


def main(shim, share, way):
    """Run the cases of a share of the lines; print the errors and the number of cases."""
    first, interval = (int(number) for number in share.split("/"))
    warnings.simplefilter("ignore")
    runpy.run_path(os.path.join(shim, "inject", "sitecustomize.py"))
    core = sys.modules["_tfprof.shim.core"]
    for name in ["formats.policy", *("shim." + name for name in modules_of(shim))]:
        __import__("_tfprof." + name)
    shim_modules = {name: module for name, module in sys.modules.items() if name.partition(".")[0] == "_tfprof"}
    core.disarm()
    sys.modules.update(shim_modules)  # disarming removes them; each case arms the shim again
    sys.modules["_tfprof.shim.guard"].packages.add("fakes")  # their frames are like those of TensorFlow
    callback_codes.append(sys.modules["_tfprof.shim.guard"].called_back(main).__code__)
    callback_codes.append(sys.modules["_tfprof.shim.process_events"]._run.__code__)
    exceptions = [cls for cls in exception_classes() if way != "outside" or not issubclass(cls, NOT_FROM_OUTSIDE)]
    gc.freeze()  # otherwise the first collection in each child copies its whole memory
    gc.disable()  # a collection runs lines of the shim
    cases = missed = 0
    for name, error in run_all(cases_of(first, interval, exceptions, way)):
        cases += 1
        missed += error == MISSED
        if error and error != MISSED:
            print(*name, error)
    if missed * 50 > cases:
        print(missed, "of", cases, "exceptions were not raised at a line of the shim")
    else:
        print(cases, "cases run")


#: Exceptions that are not raised in the way `outside`. Python's own functions also raise the first
#: two without arguments, so the test could not distinguish them. The C interface cannot pass the
#: arguments that the others need.
NOT_FROM_OUTSIDE = (MemoryError, StopIteration, *(getattr(builtins, name, MemoryError) for name in EXCEPTION_ARGUMENTS))

if __name__ == "__main__":
    main(*sys.argv[1:])
