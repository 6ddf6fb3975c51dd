"""Run by a TensorFlow of its own: has TensorFlow's own profiler answer questions.

The questions are those of folders of cases, the answers are files.

    python oracle.py CASES ANSWERS

A case is `graph.pb`, `op_log.pb`, `run-N.pb`, or `profile.pb`, a ProfileProto; its questions are in
`queries.json`. ANSWERS gets a file for each: {coverage, answers: a list of {printed, warned, root,
files}, profile}, bytes as Latin-1 text.
"""

import contextlib
import ctypes
import json
import os
import sys
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

try:
    from tensorflow.python.util import _pywrap_tfprof as native
except ImportError:
    from tensorflow.python import pywrap_tensorflow as native

from tensorflow.core.profiler import tfprof_options_pb2 as options_pb2
from tensorflow.core.protobuf import config_pb2


def read(*parts):
    """Return the bytes of a file, none if there is no such file."""
    path = os.path.join(*parts)
    if not os.path.exists(path):
        return b""
    with open(path, "rb") as file:
        return file.read()


def latin(data):
    """Return bytes as text, each byte a character."""
    return data.decode("latin-1")


@contextlib.contextmanager
def redirected(paths):
    """Send what C++ writes to descriptors 1 and 2 to files: {descriptor: path}."""
    kept = {number: os.dup(number) for number in paths}
    for number, path in paths.items():
        with open(path, "wb") as file:
            os.dup2(file.fileno(), number)
    try:
        yield
    finally:
        ctypes.CDLL(None).fflush(None)
        for number, descriptor in kept.items():
            os.dup2(descriptor, number)
            os.close(descriptor)


def encoded(options, folder):
    """Return a question's options as TensorFlow takes them, answers to go into ``folder``."""
    wanted = options_pb2.OptionsProto()
    for name, value in options.items():
        if isinstance(value, list):
            getattr(wanted, name).extend(value)
        elif name == "output":
            wanted.output = value.replace("FOLDER", folder)
        else:
            setattr(wanted, name, value)
    return wanted.SerializeToString()


def advised(query):
    """Return the checkers of a question to the advisor."""
    wanted = options_pb2.AdvisorOptionsProto()
    for checker in query["checkers"]:
        wanted.checkers[checker].options.clear()
    return wanted.SerializeToString()


def ask(query):
    """Return TensorFlow's answer to one question."""
    with tempfile.TemporaryDirectory() as folder:
        options = advised(query) if query["view"] == "advise" else encoded(query["options"], folder)
        with redirected({1: os.path.join(folder, "printed"), 2: os.path.join(folder, "warned")}):
            root = native.Profile(query["view"].encode(), options)
        files = {name: latin(read(folder, name)) for name in os.listdir(folder)}
    said = {name: files.pop(name).replace(folder, "FOLDER") for name in ("printed", "warned")}
    return dict(said, root=latin(root), files=files)


def load(folder):
    """Have the profiler know a case; return what share of the graph each step covers that it takes."""
    path = os.path.join(folder, "profile.pb")
    if os.path.exists(path):
        native.ProfilerFromFile(path.encode() if sys.version_info < (3, 8) else path)
        return []
    native.NewProfiler(read(folder, "graph.pb"), read(folder, "op_log.pb"))
    runs = [read(folder, f"run-{step}.pb") for step in range(len(os.listdir(folder)))]
    shares = [(run, native.AddStep(step, b"", run, b"")) for step, run in enumerate(runs) if run]
    return [share for run, share in shares if config_pb2.RunMetadata.FromString(run).HasField("step_stats")]


def answer(folder):
    """Return all that TensorFlow says of a case: its answers, and its ProfileProto where there can be one."""
    with open(os.path.join(folder, "queries.json")) as file:
        case = json.load(file)
    said = {"coverage": load(folder), "answers": []}
    for number, query in enumerate(case["queries"]):
        print("question", number, "of", folder, file=sys.stderr, flush=True)  # the last one, if TensorFlow falls over
        said["answers"].append(ask(query))
    if case["whole"]:
        said["profile"] = latin(native.SerializeToString())
    native.DeleteProfiler()
    return said


def main():
    """Answer all cases."""
    cases, answers = sys.argv[1:]
    os.makedirs(answers, exist_ok=True)
    for name in sorted(os.listdir(cases)):
        found = answer(os.path.join(cases, name))
        with open(os.path.join(answers, name + ".json"), "w") as file:
            json.dump(found, file)


if __name__ == "__main__":
    main()
