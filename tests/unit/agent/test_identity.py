"""The identity of a job: only listed parts of its environment and hello are used."""

import json
import os

import pytest
from tfprof.agent import identity


def test_only_names_on_the_list_become_tags() -> None:
    environ = {
        "SLURM_JOB_ID": "42",
        "POD_NAME": "worker-3",
        "AWS_SECRET_ACCESS_KEY": "hush",
        "PATH": "/bin",
        "RANK": "",
    }
    assert identity.tags(environ) == {"slurm_job_id": "42", "pod_name": "worker-3"}


def test_only_the_task_of_tf_config_is_used() -> None:
    config = {"cluster": {"worker": ["10.0.0.1:2222"]}, "task": {"type": "worker", "index": 1}, "password": "hush"}
    assert identity.tags({"TF_CONFIG": json.dumps(config)}) == {"tf_task": "worker:1"}


@pytest.mark.parametrize(
    "config",
    [
        "",
        "{",
        "[]",
        "{}",
        '{"task": 3}',
        '{"task": {"type": "w", "index": "x"}}',
        '{"task": {"type": "w", "index": Infinity}}',
        "[" * 100_000,
    ],
)
def test_an_invalid_tf_config_gives_no_tag(config: str) -> None:
    assert identity.tags({"TF_CONFIG": config}) == {}


@pytest.mark.parametrize(
    ("environ", "rank"),
    [
        ({"OMPI_COMM_WORLD_RANK": "3", "SLURM_PROCID": "0"}, 3),
        ({"SLURM_PROCID": "5"}, 5),
        ({"PMI_RANK": "0"}, 0),
        ({"RANK": "x", "SLURM_PROCID": "1"}, 1),
        ({"RANK": "9" * 40}, None),
        ({}, None),
    ],
)
def test_the_most_specific_rank_wins(environ: dict[str, str], rank: int | None) -> None:
    assert identity.rank(environ) == rank


def test_the_id_of_a_container_is_read_from_the_cgroup() -> None:
    container_id = "ab" * 32
    assert identity.container(f"0::/system.slice/docker-{container_id}.scope\n") == container_id
    assert identity.container(f"12:cpu:/kubepods/burstable/pod1/{container_id}\n") == container_id
    assert identity.container("0::/user.slice/user-1000.slice\n") is None
    assert identity.container("0::/" + "ab" * 40) is None


def test_the_environment_of_a_process_is_read_from_outside() -> None:
    assert identity.environment_of(os.getpid()).get("HOME") == os.environ.get("HOME")
    assert identity.environment_of(1 << 30) == {}


def test_only_listed_texts_are_accepted_from_a_hello_and_long_ones_are_cut() -> None:
    hello = {"name": "x" * 5000, "framework": ["tensorflow"], "python": "3.11", "secret": "hush", "ppid": 7}
    assert identity.accepted_hello(hello) == {"name": "x" * 512, "python": "3.11", "ppid": 7}
    assert identity.accepted_hello({"ppid": "7"}) == identity.accepted_hello({"ppid": True}) == {}


def test_a_user_without_a_name_is_shown_by_number() -> None:
    assert identity.user_name(0) == "root"
    assert identity.user_name(3999999999) == "3999999999"


def test_names_of_functions_are_accepted_if_their_keys_are_numbers() -> None:
    functions = {"710": "train_step", "x": "no key", "7" * 11: "too long a key", "8": 8, "9": "n" * 5000}
    assert identity.accepted_hello({"functions": functions}) == {"functions": {"710": "train_step", "9": "n" * 512}}
    assert identity.accepted_hello({"functions": ["train_step"]}) == {}
    many_functions = {str(number): "f" for number in range(1000)}
    assert len(identity.accepted_hello({"functions": many_functions})["functions"]) == 256


@pytest.mark.parametrize(
    ("words", "stored"),
    [
        ("python train.py --lr 0.1", "python train.py --lr 0.1"),
        ("train --api-key abc --lr 1", "train --api-key *** --lr 1"),
        ("train --token=a=b", "train --token=***"),
        ("env DB_PASSWORD=abc train", "env DB_PASSWORD=*** train"),
        ("train --secret --abc x", "train --secret *** x"),
        ("train --password", "train --password"),
        ("train keypoints.py", "train keypoints.py"),
    ],
)
def test_values_that_may_be_secrets_are_not_stored(words: str, stored: str) -> None:
    assert identity.command_line(words.split()) == stored.split()


def test_a_text_that_mentions_a_secret_is_not_stored() -> None:
    assert identity.command_line(["bash", "-c", "train --token abc"]) == ["bash", "-c", "***"]


def test_a_long_command_line_is_cut() -> None:
    stored = identity.command_line(["train", *["x" * 1000] * 9])
    assert len(" ".join(stored)) <= 4097
    assert stored[-1].endswith("…")


def tf_config(index: int, port: int = 2222) -> str:
    return json.dumps({"cluster": {"worker": [f"10.0.0.1:{port}"]}, "task": {"type": "worker", "index": index}})


def test_workers_of_one_cluster_have_one_group() -> None:
    groups = [identity.group({"TF_CONFIG": config}) for config in (tf_config(0), tf_config(1), tf_config(0, 2223))]
    assert groups[0] == groups[1] != groups[2]
    assert str(groups[0]).startswith("tf-")
    assert "10.0.0.1" not in str(groups[0])


@pytest.mark.parametrize(
    ("environ", "launcher"),
    [
        ({"SLURM_JOB_ID": "42", "SLURM_STEP_ID": "0"}, "slurm"),
        ({"PMIX_NAMESPACE": "prterun-1", "SLURM_JOB_ID": "42", "SLURM_STEP_ID": "0"}, "mpi"),
        ({"OMPI_MCA_ess_base_jobid": "3241738241"}, "mpi"),
        ({"TORCHELASTIC_RUN_ID": "none", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}, "torchrun"),
        ({"HOROVOD_GLOO_RENDEZVOUS_ADDR": "10.0.0.1", "HOROVOD_GLOO_RENDEZVOUS_PORT": "3"}, "horovod"),
    ],
)
def test_each_launcher_names_its_groups(environ: dict[str, str], launcher: str) -> None:
    name = identity.group(environ)
    assert name is not None
    assert name.partition("-")[0] == launcher
    assert identity.group(environ | {"HOME": "/elsewhere", "RANK": "7"}) == name
    assert identity.group(environ | {next(iter(environ)): "another"}) != name


@pytest.mark.parametrize(
    "environ",
    [
        {},
        {"SLURM_JOB_ID": "42"},
        {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"},
        {"TF_CONFIG": '{"cluster": {}}'},
        {"TF_CONFIG": '{"cluster": 3}'},
        {"TF_CONFIG": "[" * 100_000},
    ],
)
def test_other_environments_name_no_group(environ: dict[str, str]) -> None:
    assert identity.group(environ) is None
