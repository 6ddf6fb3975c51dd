"""Runs under TensorFlow 1.15 or 2.x: writes the TF profiler's timelines of random graphs and steps.

    python timeline.py CASES ANSWERS

CASES is JSON: a list of {graph, op_log, steps: [[number, RunMetadata]], questions: [{view,
options}]}, with bytes as Latin-1 text. ANSWERS gets {files: {name: content}, printed} for each case
and question. In the option `output` and in `printed`, FOLDER stands for the folder of the files.
"""

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


def serialized_options(options, folder):
    """Return options as a serialized OptionsProto, with output to ``folder``."""
    proto = options_pb2.OptionsProto()
    for name, value in options.items():
        if isinstance(value, list):
            getattr(proto, name).extend(value)
        else:
            setattr(proto, name, value.replace("FOLDER", folder) if name == "output" else value)
    return proto.SerializeToString()


def content(path):
    """Return the content of a file as Latin-1 text."""
    with open(path, "rb") as file:
        return file.read().decode("latin-1")


def ask(question):
    """Return the files and the output that answer a question."""
    with tempfile.TemporaryDirectory() as folder, tempfile.NamedTemporaryFile() as printed:
        stdout = os.dup(1)
        os.dup2(printed.fileno(), 1)
        native.Profile(question["view"].encode(), serialized_options(question["options"], folder))
        ctypes.CDLL(None).fflush(None)
        os.dup2(stdout, 1)
        os.close(stdout)
        files = {name: content(os.path.join(folder, name)) for name in os.listdir(folder)}
        return {"files": files, "printed": content(printed.name).replace(folder, "FOLDER")}


def answers(case):
    """Return the answers to the questions of a case."""
    graph, op_log = (case[name].encode("latin-1") for name in ("graph", "op_log"))
    native.NewProfiler(graph, op_log)
    for number, step in case["steps"]:
        native.AddStep(number, b"", step.encode("latin-1"), b"")
    results = [ask(question) for question in case["questions"]]
    native.DeleteProfiler()
    return results


def main():
    """Read the cases, ask their questions, write the answers."""
    with open(sys.argv[1]) as file:
        cases = json.load(file)
    results = [answers(case) for case in cases]
    with open(sys.argv[2], "w") as file:
        json.dump(results, file)


if __name__ == "__main__":
    main()
