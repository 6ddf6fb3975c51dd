"""The identity of a job: the allowed parts of its environment, cgroup and hello."""

import hashlib
import json
import os
import pwd
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from ..formats import span_kinds

#: Environment variables that become tags. Of all others, only the task in TF_CONFIG becomes one.
TAGS: Final[Mapping[str, str]] = {
    "SLURM_JOB_ID": "slurm_job_id",
    "SLURM_JOB_NAME": "slurm_job_name",
    "SLURM_STEP_ID": "slurm_step_id",
    "SLURM_ARRAY_TASK_ID": "slurm_array_task_id",
    "SLURM_PROCID": "slurm_procid",
    "SLURM_LOCALID": "slurm_localid",
    "SLURM_NODEID": "slurm_nodeid",
    "SLURM_NTASKS": "slurm_ntasks",
    "SLURM_CLUSTER_NAME": "slurm_cluster_name",
    "OMPI_COMM_WORLD_RANK": "ompi_rank",
    "OMPI_COMM_WORLD_SIZE": "ompi_size",
    "PMIX_RANK": "pmix_rank",
    "PMI_RANK": "pmi_rank",
    "PMI_SIZE": "pmi_size",
    "HOROVOD_RANK": "horovod_rank",
    "HOROVOD_SIZE": "horovod_size",
    "RANK": "rank",
    "LOCAL_RANK": "local_rank",
    "WORLD_SIZE": "world_size",
    "POD_NAME": "pod_name",
    "POD_NAMESPACE": "pod_namespace",
    "POD_UID": "pod_uid",
    "KUBERNETES_NODE_NAME": "kubernetes_node_name",
    "PBS_JOBID": "pbs_jobid",
    "LSB_JOBID": "lsb_jobid",
}
#: Variables with the rank of a process among its peers, the most specific first.
RANK_VARIABLES: Final = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "HOROVOD_RANK", "RANK", "SLURM_PROCID")
#: Sets of variables that name a distributed job, and the launcher that writes them; all of a set
#: must be there. Of TF_CONFIG, which comes before these, the group is the cluster.
GROUP_VARIABLES: Final = (
    ("horovod", ("HOROVOD_GLOO_RENDEZVOUS_ADDR", "HOROVOD_GLOO_RENDEZVOUS_PORT")),
    ("torchrun", ("TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT")),
    ("mpi", ("PMIX_NAMESPACE",)),
    ("mpi", ("OMPI_MCA_ess_base_jobid",)),
    ("slurm", ("SLURM_JOB_ID", "SLURM_STEP_ID")),
)
#: Text fields of the hello that are accepted.
HELLO_FIELDS: Final = ("name", "framework", "framework_version", "python", "executable", "trace")

#: Takes the place of values that may be secrets.
HIDDEN: Final = "***"
_SECRET: Final = re.compile("password|passwd|token|secret|key|credential|authorization", re.IGNORECASE)
#: Maximum number of characters of a command line.
_COMMAND_MAX: Final = 4096
_TEXT_MAX: Final = 512
_DIGITS: Final = 8
_FUNCTIONS_MAX: Final = 256
_KEY: Final = re.compile(r"[0-9]{1,10}")
_CONTAINER: Final = re.compile(r"(?<![0-9a-f])([0-9a-f]{64})(?![0-9a-f])")


def tags(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the tags in ``environ``: the variables of `TAGS`, and the task of TF_CONFIG."""
    variable_tags = {tag: environ[name][:_TEXT_MAX] for name, tag in TAGS.items() if environ.get(name)}
    task = _tf_task(environ.get("TF_CONFIG", ""))
    return variable_tags | ({"tf_task": task} if task else {})


def rank(environ: Mapping[str, str]) -> int | None:
    """Return the rank of a process with ``environ``, None when it has none."""
    for name in RANK_VARIABLES:
        text = environ.get(name, "")
        if text.isascii() and text.isdigit() and len(text) < 10:
            return int(text)
    return None


def group(environ: Mapping[str, str]) -> str | None:
    """Return the name of the distributed job of a process with ``environ``, None without one.

    The name is the same in all of its processes: the launcher, and a digest of what tells its jobs
    apart.
    """
    cluster = _tf_cluster(environ.get("TF_CONFIG", ""))
    if cluster:
        return f"tf-{_digest(cluster)}"
    for launcher, names in GROUP_VARIABLES:
        values = [environ.get(name, "") for name in names]
        if all(values):
            return f"{launcher}-{_digest(json.dumps(values))}"
    return None


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:_DIGITS]


def _tf_cluster(config: str) -> str | None:
    """Return the cluster in a TF_CONFIG as text, equal for equal clusters; None without one."""
    try:
        cluster = json.loads(config)["cluster"]
        return json.dumps(cluster, sort_keys=True) if cluster and isinstance(cluster, dict) else None
    except (ValueError, TypeError, KeyError, RecursionError):
        return None


def _tf_task(config: str) -> str | None:
    """Return `type:index` of the task in a TF_CONFIG, None when there is none."""
    try:
        task = json.loads(config)["task"]
        return f"{task['type']}:{int(task['index'])}"[:_TEXT_MAX]
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return None


def container(cgroup: str) -> str | None:
    """Return the container's id from the text of /proc/PID/cgroup, None without a container."""
    match = _CONTAINER.search(cgroup)
    return match.group(1) if match else None


def user_name(user_id: int) -> str:
    """Return the name of user ``user_id``; if the user has no name, return the number as text."""
    try:
        return pwd.getpwuid(user_id).pw_name
    except KeyError:
        return str(user_id)


def environment_of(pid: int) -> dict[str, str]:
    """Return the initial environment of process ``pid``, empty where it is unreadable."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            text = os.fsdecode(file.read())
    except OSError:
        return {}
    return dict(entry.split("=", 1) for entry in text.split("\0") if "=" in entry)


def folder_of(pid: int) -> str | None:
    """Return the current folder of process ``pid``, None where it is unreadable."""
    try:
        return os.readlink(f"/proc/{pid}/cwd")
    except OSError:
        return None


def process_tags(pid: int) -> dict[str, str]:
    """Return the tags of process ``pid``, including its container."""
    try:
        with open(f"/proc/{pid}/cgroup", encoding="utf-8", errors="replace") as file:
            container_id = container(file.read())
    except OSError:
        container_id = None
    return tags(environment_of(pid)) | ({"container": container_id} if container_id else {})


def command_line(words: Sequence[str]) -> list[str]:
    """Return a command line without values that may be secrets, cut at its maximum length.

    These are values of names such as `--api-key X` and `TOKEN=X`, and whole texts of several words
    that mention such a name.
    """
    stored: list[str] = []
    room, follows_name = _COMMAND_MAX, False
    for word in words:
        name, equals, _ = word.partition("=")
        is_named = _SECRET.search(name) is not None
        if follows_name or (_SECRET.search(word) and any(map(str.isspace, word))):
            text = HIDDEN
        else:
            text = f"{name}={HIDDEN}" if is_named and equals else word
        follows_name = not follows_name and is_named and not equals and word.startswith("-")
        if len(text) > room:
            return [*stored, f"{text[:room]}…"]
        stored.append(text)
        room -= len(text) + 1
    return stored


def accepted_hello(hello: Mapping[str, Any]) -> dict[str, Any]:
    """Return the accepted fields of a job's hello.

    They are the texts of `HELLO_FIELDS`, the pid of its parent process, the kinds of spans by
    number, and the names of functions by key. The length of all texts and the number of functions
    are limited.
    """
    fields: dict[str, Any] = {
        name: hello[name][:_TEXT_MAX] for name in HELLO_FIELDS if isinstance(hello.get(name), str)
    }
    if type(hello.get("ppid")) is int:
        fields["ppid"] = hello["ppid"]
    functions = hello.get("functions")
    if isinstance(functions, dict):
        pairs = [
            (key, name[:_TEXT_MAX]) for key, name in functions.items() if _KEY.fullmatch(key) and isinstance(name, str)
        ]
        fields["functions"] = dict(pairs[:_FUNCTIONS_MAX])
    if kinds := span_kinds.declared(hello.get("kinds")):
        fields["kinds"] = span_kinds.document(kinds)
    return fields
