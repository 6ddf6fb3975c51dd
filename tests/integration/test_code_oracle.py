"""The code view and its pprof files against the TF profiler: messages, rows and samples."""

import contextlib
import gzip
import io
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from fakes.forks import ForkServer
from fakes.profiles import profile
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from tfprof.cli.import_ import import_
from tfprof.collector.decoders.proto import graph_pb2
from tfprof.collector.export import messages, pprof
from tfprof.collector.proto import pprof_pb2, tfprof_output_pb2
from tfprof.collector.render import tree_text
from tfprof.collector.store.reader import LocalJob, LocalStore
from tfprof.collector.tfviews.code import call_tree, code_view
from tfprof.collector.tfviews.nodes import Node
from tfprof.collector.tfviews.options import Options
from tfprof.collector.tfviews.parity import Parity
from tfprof.commands.streams import clean

pytestmark = pytest.mark.tf

ORACLE = Path(__file__).parent / "oracle" / "scripts" / "code_view.py"
#: Number of cases of each kind; more with TFPROF_TEST_CASES=1000.
CASES = {"random": int(os.environ.get("TFPROF_TEST_CASES", "40")), "real": 4}
PARITIES = {"tf1": Parity("1.15", exact=True), "tf2": Parity("2.21", exact=True)}


def message_class() -> Any:
    """Return a class like MultiGraphNodeProto with bytes for strings.

    The TF profiler cuts long names within a character, and its strings are not always UTF-8.
    """
    pool = descriptor_pool.DescriptorPool()
    for file in (graph_pb2.DESCRIPTOR, tfprof_output_pb2.DESCRIPTOR):
        proto = descriptor_pb2.FileDescriptorProto()
        file.CopyToProto(proto)
        for message in proto.message_type:
            for field in message.field:
                if field.type == field.TYPE_STRING:
                    field.type = field.TYPE_BYTES
        pool.Add(proto)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("tfprof.proto.MultiGraphNodeProto"))


MessageWithBytes = message_class()


@dataclass(frozen=True)
class Case:
    """One graph with its op log and steps, and the answers of the TF profiler."""

    folder: Path
    parity: Parity
    job: LocalJob
    lost_gradients: int
    queries: Sequence[Mapping[str, Any]]

    def nodes(self, step: int) -> list[Node]:
        """Return our nodes of one step, or of all steps for -1."""
        steps_profile = profile(self.job, step, parity=self.parity)
        assert steps_profile is not None
        return steps_profile.nodes


def case_of(folder: Path, parity: Parity) -> Case:
    """Import the files of one case of the oracle; return the case."""
    runs = ",".join(map(str, sorted(folder.glob("run-*.pb"))))
    files = [f"--graph_path={folder / 'graph.pb'}", f"--run_meta_path={runs}", f"--op_log_path={folder / 'oplog.pb'}"]
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        import_.main([*files, f"--store={folder / 'store'}"], standalone_mode=False)
    answers = json.loads((folder / "queries.json").read_text())
    return Case(folder, parity, LocalStore(folder / "store").job("last"), answers["lost"], answers["queries"])


@pytest.fixture(scope="module", params=["tf1-random", "tf1-real", "tf2-random", "tf2-real"])
def cases(
    request: pytest.FixtureRequest, plain_forks: Callable[[str], ForkServer], tmp_path_factory: pytest.TempPathFactory
) -> list[Case]:
    """Cases with the answers of the TF profiler."""
    version, kind = request.param.split("-")
    folder = tmp_path_factory.mktemp(request.param)
    plain_forks(version).output(ORACLE, folder, kind, 1, CASES[kind])
    return [case_of(path, PARITIES[version]) for path in sorted(folder.glob("case-*"))]


def options_of(query: Mapping[str, Any]) -> Options:
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in query.items()}
    return Options(**values | {"select": frozenset(values["select"])})


def with_clean_names(message: Any) -> Any:
    """Return a message with broken characters in names replaced, as in tfprof's messages."""
    waiting = [message]
    while waiting:
        node = waiting.pop()
        node.name = node.name.decode("utf-8", "replace").encode()
        waiting.extend(node.children)
    return message


def text_rows(data: bytes) -> list[str]:
    """Return the lines of a text below its legend."""
    text = data.decode("utf-8", "surrogateescape").split("Profile:\n", 1)[1]
    return [clean(line) for line in text.removesuffix("\n").split("\n")]


def test_every_answer_equals_that_of_the_tf_profiler(cases: list[Case]) -> None:
    compared = 0
    for case in cases:
        nodes: dict[int, list[Node]] = {}
        for number, query in enumerate(case.queries):
            options, where = options_of(query["options"]), f"{case.folder}, query {number}: {query['options']}"
            if options.step not in nodes:
                nodes[options.step] = case.nodes(options.step)
            view = code_view(nodes[options.step], options, case.parity)
            theirs = with_clean_names(MessageWithBytes.FromString(query["proto"].encode("latin-1")))
            assert MessageWithBytes.FromString(messages.code_message(view).SerializeToString()) == theirs, where
            text = [clean(line) for line in tree_text.lines("code", view, options.select)]
            assert text[text.index("Profile:") + 1 :] == text_rows(query["text"].encode("latin-1")), where
            if query["pprof"]:
                their_profile = pprof_pb2.Profile.FromString(gzip.decompress(query["pprof"].encode("latin-1")))
                assert pprof.message(view, options.select) == their_profile, where
            compared += 1
    assert compared >= 100


def test_the_number_of_gradients_without_a_forward_node_equals_that_of_the_tf_profiler(cases: list[Case]) -> None:
    for case in cases:
        assert len(call_tree(case.nodes(-1), case.parity).gradients_without_forward) == case.lost_gradients, case.folder
