"""Runs under TensorFlow 1.15 or 2.x: writes the TF profiler's timelines of random graphs and steps.

    python timeline.py CASES ANSWERS

CASES is JSON: a list of {graph, op_log, steps: [[number, RunMetadata]], questions: [{view,
options}]}, with bytes as Latin-1 text. ANSWERS gets a list for each case: the answers of
`answers.py` to its questions.
"""

import json
import sys

from answers import ask, native


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
