"""Profiles and op logs: tfprof reads the files of the TF profiler, and writes equal files."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fakes.forks import ForkServer
from integration.oracle.cases import write_cases
from integration.oracle.tfprof_answers import COMPAT
from tfprof.cli import main as cli
from tfprof.collector.export.code_defs import NONE
from tfprof.collector.exporters.op_log import op_log
from tfprof.collector.exporters.profile_proto import job_pieces
from tfprof.collector.proto.tensorflow_pb2 import AttrValue
from tfprof.collector.proto.tfprof_log_pb2 import OpLogProto, ProfileProto
from tfprof.collector.store.reader import LocalJob, LocalStore

pytestmark = pytest.mark.tf

ORACLE = Path(__file__).parent / "oracle" / "scripts" / "profiles.py"
SEEDS = range(200, 225)


class Cases:
    """Random cases, and the files that one version of TensorFlow writes for each case."""

    def __init__(self, version: str, tensorflow: ForkServer, folder: Path) -> None:
        self.version, self.folder = version, folder
        self.compat = COMPAT[version]
        write_cases(folder / "cases", SEEDS)
        (folder / "run").mkdir()
        tensorflow.output(ORACLE, "cases", folder / "cases", folder / "theirs")
        tensorflow.output(ORACLE, "run", folder / "run")

    def writable_cases(self) -> Iterator[tuple[str, Path, Path]]:
        """Yield (name, case, TensorFlow's files) of each case for which TensorFlow writes files."""
        for case in sorted((self.folder / "cases").iterdir()):
            theirs = self.folder / "theirs" / case.name
            if (theirs / "profile.pb").exists():
                yield case.name, case, theirs


@pytest.fixture(scope="module", params=["tf1", "tf2"])
def cases(
    request: pytest.FixtureRequest, plain_forks: Callable[[str], ForkServer], tmp_path_factory: pytest.TempPathFactory
) -> Cases:
    """The cases and files of one version of TensorFlow."""
    return Cases(request.param, plain_forks(request.param), tmp_path_factory.mktemp(request.param))


class ImportStore:
    """A store for imported files."""

    def __init__(self, path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.path = path
        self._capsys = capsys

    def import_job(self, *options: str) -> tuple[LocalJob, dict[str, Any]]:
        """Run `tfprof import`; return the imported job and the printed JSON."""
        with pytest.raises(SystemExit) as exit_info:
            cli.main(["import", *options, "--json", "--store", str(self.path)])
        printed = self._capsys.readouterr()
        assert not exit_info.value.code, printed.err
        answer = json.loads(printed.out)
        return LocalStore(self.path).job(answer["job"]), answer


@pytest.fixture
def import_store(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> ImportStore:
    """An empty store."""
    return ImportStore(tmp_path / "store", capsys)


def import_options(case: Path) -> list[str]:
    runs = sorted(case.glob("run-*.pb"))
    files = {"graph_path": case / "graph.pb", "op_log_path": case / "op_log.pb"}
    options = [f"--{name}={path}" for name, path in files.items() if path.exists()]
    return [*options, "--run_meta_path", ",".join(map(str, runs))] if runs else options


def normalize(profile: ProfileProto) -> ProfileProto:
    """Replace ids in a profile by their strings, and sort attributes; return the profile."""
    table = {0: NONE, **profile.id_to_string}
    for node in profile.nodes.values():
        for frame in node.trace.traces:
            frame.file, frame.function, frame.line = (
                table[n] for n in (frame.file_id, frame.function_id, frame.line_id)
            )
            frame.file_id = frame.function_id = frame.line_id = 0
    profile.id_to_string.clear()
    return sort_attributes(profile)


def sort_attributes(profile: ProfileProto) -> ProfileProto:
    for node in profile.nodes.values():
        for key in list(node.attrs):
            node.attrs[key] = AttrValue.FromString(node.attrs[key]).SerializeToString(deterministic=True)
    return profile


def read_profile(path: Path) -> ProfileProto:
    return ProfileProto.FromString(path.read_bytes())


def export_profile(job: LocalJob, compat: str) -> ProfileProto:
    return ProfileProto.FromString(b"".join(job_pieces(job, compat=compat)))


def differences(theirs: ProfileProto, ours: ProfileProto) -> list[str]:
    """Return the differences of two profiles, node by node and field by field."""
    texts = []
    for number in sorted({*theirs.nodes, *ours.nodes}):
        their_node, our_node = theirs.nodes[number], ours.nodes[number]
        texts += [
            f"{their_node.name!r} {field.name}: {getattr(their_node, field.name)} != {getattr(our_node, field.name)}"
            for field in their_node.DESCRIPTOR.fields
            if getattr(their_node, field.name) != getattr(our_node, field.name)
            or (field.name == "trace" and their_node.HasField("trace") != our_node.HasField("trace"))
        ]
    texts += [
        f"{field.name}: {getattr(theirs, field.name)} != {getattr(ours, field.name)}"
        for field in theirs.DESCRIPTOR.fields
        if field.name != "nodes" and getattr(theirs, field.name) != getattr(ours, field.name)
    ]
    return texts


def test_a_graph_and_its_steps_are_written_as_the_tf_profiler_writes_them(
    cases: Cases, import_store: ImportStore
) -> None:
    compared = 0
    for name, case, theirs in cases.writable_cases():
        job, _ = import_store.import_job(*import_options(case))
        assert not differences(
            normalize(read_profile(theirs / "profile.pb")), normalize(export_profile(job, cases.compat))
        ), name
        compared += bool(list(case.glob("run-*.pb")))
    assert compared > 10


@pytest.mark.parametrize("file", ["profile.pb", "reloaded.pb"])
def test_a_profile_that_is_read_and_written_does_not_change(cases: Cases, import_store: ImportStore, file: str) -> None:
    compared = 0
    for name, _, theirs in cases.writable_cases():
        job, answer = import_store.import_job("--profile_path", str(theirs / file))
        profile = read_profile(theirs / file)
        assert (answer["nodes"], answer["steps"]) == (len(profile.nodes), len(profile.steps))
        # Parity to either version gives the same profile: the file has the output slot of each
        # input.
        for compat in COMPAT.values():
            assert not differences(normalize(read_profile(theirs / file)), normalize(export_profile(job, compat))), name
        compared += sum(len(node.execs) for node in profile.nodes.values())
    assert compared > 200


def test_a_real_profile_keeps_the_ids_of_its_strings(cases: Cases, import_store: ImportStore) -> None:
    theirs = read_profile(cases.folder / "run" / "profile.pb")
    assert theirs.has_trace
    job, _ = import_store.import_job("--profile_path", str(cases.folder / "run" / "profile.pb"))
    assert not differences(sort_attributes(theirs), sort_attributes(export_profile(job, cases.compat)))


def test_a_real_run_is_written_as_the_tf_profiler_writes_it_from_binary_or_text_files(
    cases: Cases, import_store: ImportStore
) -> None:
    run = cases.folder / "run"
    theirs = sort_attributes(read_profile(run / "profile.pb"))
    for suffix in ("pb", "pbtxt"):
        run_paths = ",".join(str(run / f"run-{number}.{suffix}") for number in range(3))
        graph = ("--graph-path", str(run / f"graph.{suffix}"), "-run_meta_path", run_paths)
        job, _ = import_store.import_job(*graph, "--op-log-path", str(run / "tfprof_log"))
        assert not differences(theirs, sort_attributes(export_profile(job, cases.compat)))


def test_an_op_log_that_is_read_and_written_does_not_change(cases: Cases, import_store: ImportStore) -> None:
    run = cases.folder / "run"
    job, _ = import_store.import_job("--graph_path", str(run / "graph.pb"), "--op_log_path", str(run / "tfprof_log"))
    assert op_log(job) == OpLogProto.FromString((run / "tfprof_log").read_bytes())
