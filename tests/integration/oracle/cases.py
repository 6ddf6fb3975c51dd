"""Writes cases: folders with `graph.pb`, `run-N.pb`, often `op_log.pb`, and `queries.json`.

PYTHONPATH=tests python -m integration.oracle.cases FOLDER FIRST_SEED LAST_SEED
"""

import json
import random
import sys
from pathlib import Path
from typing import Final

from integration.oracle import graphs
from integration.oracle.queries import Questions
from tfprof.collector.decoders.proto.graph_pb2 import GraphDef

#: Names of the real runs of `scripts/real_runs.py`.
REAL_RUNS: Final = ("conv", "loop", "rnn")
#: Number of questions to views in a random case.
QUESTIONS: Final = 60


def write_case(folder: Path, seed: int) -> None:
    """Write the random case of a seed."""
    dice = graphs.Dice(seed)
    dice.wild = dice.random() < 0.1
    folder.mkdir(parents=True)
    node_count = dice.choice((1, 3, 8, 20, 20, 40, 40, 120))
    cycles, dangling = dice.random() < 0.5, dice.random() < 0.2
    graph = graphs.graph(dice, node_count, cycles=cycles, dangling=dangling)
    (folder / "graph.pb").write_bytes(graph.serialized)
    node_names = [*graph.names, *graphs.UNKNOWN_NAMES]
    if dice.random() < 0.85:
        log = graphs.op_log(dice, node_names, with_stacks=dice.random() < 0.95)
        (folder / "op_log.pb").write_bytes(log)
    steps, base = dice.choice((0, 1, 2, 3, 3, 4)), dice.choice(graphs.BASES)
    for step in range(steps):
        (folder / f"run-{step}.pb").write_bytes(graphs.run_metadata(dice, node_names, base))
    types = (*graphs.OPS, *graphs.TYPES, *(device.lower() for device in graphs.DEVICES[:6]), *graphs.UNKNOWN_NAMES)
    questions = Questions(
        dice, node_names, types, steps, ("graph",) if dice.wild else ("graph", "scope", "code")
    ).sample(QUESTIONS)
    _write_questions(folder, questions, is_whole=graph.is_whole)


def write_real_questions(folder: Path, count: int) -> None:
    """Write queries.json for the case of a real run: ``count`` queries of views, and others."""
    graph = GraphDef.FromString((folder / "graph.pb").read_bytes())
    types = [*{node.op for node in graph.node}, "_trainable_variables", "/job:localhost/replica:0/task:0/device:cpu:0"]
    steps = len(list(folder.glob("run-*.pb")))
    questions = Questions(random.Random(folder.name), [node.name for node in graph.node], sorted(types), steps)
    _write_questions(folder, questions.sample(count), is_whole=True)


def _write_questions(folder: Path, questions: list[dict[str, object]], *, is_whole: bool) -> None:
    (folder / "queries.json").write_text(json.dumps({"whole": is_whole, "queries": questions}, indent=1))


def write_cases(folder: Path, seeds: range) -> None:
    """Write the cases of several seeds, each into a folder with the seed as its name."""
    for seed in seeds:
        write_case(folder / str(seed), seed)


if __name__ == "__main__":
    write_cases(Path(sys.argv[1]), range(int(sys.argv[2]), int(sys.argv[3]) + 1))
