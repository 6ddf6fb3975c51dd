"""Profiles and op logs: tfprof reads the files of the TF profiler, and writes equal files."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from fakes.command import output_of
from fakes.forks import ForkServer
from integration.oracle.tfprof_answers import COMPAT
from tfprof.collector.exporters.op_log import op_log
from tfprof.collector.exporters.profile_proto import job_pieces
from tfprof.collector.proto.tensorflow_pb2 import AttrValue
from tfprof.collector.proto.tfprof_log_pb2 import OpLogProto, ProfileProto
from tfprof.collector.store.reader import LocalJob, LocalStore

pytestmark = pytest.mark.tf

ORACLE = Path(__file__).parent / "oracle" / "scripts" / "profiles.py"


@pytest.fixture(scope="module", params=["tf1", "tf2"])
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def run(version: str, plain_forks: Callable[[str], ForkServer], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that one version of TensorFlow writes about a run."""
    folder = tmp_path_factory.mktemp(version)
    plain_forks(version).output(ORACLE, folder)
    return folder


def import_job(store: Path, *options: Path | str) -> LocalJob:
    answer = json.loads(output_of("import", *options, "--json", "--store", store))
    return LocalStore(store).job(answer["job"])


def sort_attributes(profile: ProfileProto) -> ProfileProto:
    for node in profile.nodes.values():
        for key in list(node.attrs):
            node.attrs[key] = AttrValue.FromString(node.attrs[key]).SerializeToString(deterministic=True)
    return profile


def read_profile(path: Path) -> ProfileProto:
    return ProfileProto.FromString(path.read_bytes())


def export_profile(job: LocalJob, version: str) -> ProfileProto:
    return ProfileProto.FromString(b"".join(job_pieces(job, compat=COMPAT[version])))


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


def test_a_real_profile_keeps_the_ids_of_its_strings(run: Path, version: str, tmp_path: Path) -> None:
    theirs = read_profile(run / "profile.pb")
    assert theirs.has_trace
    job = import_job(tmp_path, "--profile_path", run / "profile.pb")
    assert not differences(sort_attributes(theirs), sort_attributes(export_profile(job, version)))


def test_a_real_run_is_written_as_the_tf_profiler_writes_it_from_binary_or_text_files(
    run: Path, version: str, tmp_path: Path
) -> None:
    theirs = sort_attributes(read_profile(run / "profile.pb"))
    for suffix in ("pb", "pbtxt"):
        run_paths = ",".join(str(run / f"run-{number}.{suffix}") for number in range(3))
        graph = ("--graph-path", run / f"graph.{suffix}", "-run_meta_path", run_paths)
        job = import_job(tmp_path, *graph, "--op-log-path", run / "tfprof_log")
        assert not differences(theirs, sort_attributes(export_profile(job, version)))


def test_an_op_log_that_is_read_and_written_does_not_change(run: Path, tmp_path: Path) -> None:
    job = import_job(tmp_path, "--graph_path", run / "graph.pb", "--op_log_path", run / "tfprof_log")
    assert op_log(job) == OpLogProto.FromString((run / "tfprof_log").read_bytes())
