"""Runs under TensorFlow 1.15 or 2.x: the TF profiler answers the questions of cases.

    python answers.py CASES ANSWERS

Each folder in CASES is a case: `graph.pb`, `op_log.pb` and `run-N.pb`, or `profile.pb`, a
ProfileProto. Its questions are in `queries.json`. For each case the folder ANSWERS gets a file of
JSON: {coverage, answers: [{printed, warned, root, files}], profile}, with bytes as Latin-1 text.
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
    try:
        from tensorflow.python import _pywrap_tfprof as native  # 2.4
    except ImportError:
        from tensorflow.python import pywrap_tensorflow as native

from tensorflow.core.profiler import tfprof_options_pb2 as options_pb2
from tensorflow.core.protobuf import config_pb2


def read(*parts):
    """Return the content of a file, b"" if it does not exist."""
    path = os.path.join(*parts)
    if not os.path.exists(path):
        return b""
    with open(path, "rb") as file:
        return file.read()


def latin(data):
    """Return bytes as Latin-1 text."""
    return data.decode("latin-1")


@contextlib.contextmanager
def redirected(paths):
    """Redirect descriptors, also for C++, to files: {descriptor: path}."""
    duplicates = {descriptor: os.dup(descriptor) for descriptor in paths}
    for descriptor, path in paths.items():
        with open(path, "wb") as file:
            os.dup2(file.fileno(), descriptor)
    try:
        yield
    finally:
        ctypes.CDLL(None).fflush(None)
        for descriptor, duplicate in duplicates.items():
            os.dup2(duplicate, descriptor)
            os.close(duplicate)


def serialized_options(options, folder):
    """Return a question's options as a serialized OptionsProto, with output to ``folder``."""
    proto = options_pb2.OptionsProto()
    for name, value in options.items():
        if isinstance(value, list):
            getattr(proto, name).extend(value)
        elif name == "output":
            proto.output = value.replace("FOLDER", folder)
        else:
            setattr(proto, name, value)
    return proto.SerializeToString()


def serialized_checkers(query):
    """Return the checkers of a question as a serialized AdvisorOptionsProto."""
    proto = options_pb2.AdvisorOptionsProto()
    for checker in query["checkers"]:
        proto.checkers[checker].options.clear()
    return proto.SerializeToString()


def ask(query):
    """Return TensorFlow's answer to one question."""
    with tempfile.TemporaryDirectory() as folder:
        options = (
            serialized_checkers(query) if query["view"] == "advise" else serialized_options(query["options"], folder)
        )
        with redirected({1: os.path.join(folder, "printed"), 2: os.path.join(folder, "warned")}):
            root = native.Profile(query["view"].encode(), options)
        files = {name: latin(read(folder, name)) for name in os.listdir(folder)}
    texts = {name: files.pop(name).replace(folder, "FOLDER") for name in ("printed", "warned")}
    return dict(texts, root=latin(root), files=files)


def load(folder):
    """Load a case; return the share of the graph that each accepted step covers."""
    path = os.path.join(folder, "profile.pb")
    if os.path.exists(path):
        native.ProfilerFromFile(path.encode() if sys.version_info < (3, 8) else path)
        return []
    native.NewProfiler(read(folder, "graph.pb"), read(folder, "op_log.pb"))
    runs = [read(folder, f"run-{step}.pb") for step in range(len(os.listdir(folder)))]
    shares = [(run, native.AddStep(step, b"", run, b"")) for step, run in enumerate(runs) if run]
    return [share for run, share in shares if config_pb2.RunMetadata.FromString(run).HasField("step_stats")]


def answer(folder):
    """Return the coverage, the answers and, if there is one, the ProfileProto of a case."""
    with open(os.path.join(folder, "queries.json")) as file:
        case = json.load(file)
    output = {"coverage": load(folder), "answers": []}
    for number, query in enumerate(case["queries"]):
        # If TensorFlow crashes, the last line names the question.
        print("question", number, "of", folder, file=sys.stderr, flush=True)
        output["answers"].append(ask(query))
    if case["whole"]:  # the graph has the node of each input, else TensorFlow cannot write a profile
        output["profile"] = latin(native.SerializeToString())
    native.DeleteProfiler()
    return output


def main():
    """Answer all cases."""
    cases, answers = sys.argv[1:]
    os.makedirs(answers, exist_ok=True)
    for name in sorted(os.listdir(cases)):
        result = answer(os.path.join(cases, name))
        with open(os.path.join(answers, name + ".json"), "w") as file:
            json.dump(result, file)


if __name__ == "__main__":
    main()
