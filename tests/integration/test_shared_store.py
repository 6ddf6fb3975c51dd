"""A shared store: one service for real users, who see and steer their own jobs.

Tests collector/sharing/service.py, collector/job_changes.py.
"""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes.channel_job import OBEDIENT_JOB
from fakes.cpu_time import cpu_shares
from fakes.host_users import ADA, BOB, PAT, SERVICE, HostUser, readable_installation
from fakes.polling import until
from tfprof.collector.store.reader import LocalStore

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("setpriv") is None, reason="only root can act as several users"
)
#: Members of this group read all jobs. Debian and Red Hat have it.
READERS, READERS_GID = "games", 60
#: Share of a core below which the service is at rest.
IDLE_SHARE = 0.0003
#: An agent that opens a job, gives an order to it and ends it twice; it prints the answers.
RAW_AGENT = """
import json, os, sys
from fakes.wire_agent import WireAgent
from tfprof.formats import wire
from tfprof.formats.wire import Head
uid = int(sys.argv[1], 16)
agent = WireAgent("", url="ipc://" + os.environ["TFPROF_STORE"] + "/collector.sock")
agent.greet(timeout_s=60)
for head, body in (
    (Head(wire.OPEN, uid, 0, 0, 1), {"name": "forged", "user": "root", "host": "h"}),
    (Head(wire.ORDER, uid, 0, 0, 7), {"action": "trace", "trace": "all", "level": "auto", "steps": 1, "for_ns": 0,
        "patience_s": 1, "giver": {"user": "root", "host": "h", "pid": 1}}),
    (Head(wire.CLOSE, uid, 0, 0, 1), {"state": "exited"}),
    (Head(wire.GIVEN_UP, uid, 0, 1, 1), {"identity": {"name": "forged"}, "end": {"state": "lost"}}),
    (Head(wire.CHANGE, uid, 0, 0, 2), {"before": [], "tags": ["forged"]}),
    (Head(wire.CHANGE, uid, 0, 0, 3), {"remove": True}),
):
    agent.send(head, json.dumps(body).encode())
    answer, reason = agent.receive(30)
    while answer.type == wire.WELCOME:
        answer, reason = agent.receive(30)
    print(answer.type, (reason or {}).get("slug"))
agent.close()
"""


@pytest.fixture(scope="module")
def programs() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="t") as name:
        os.chmod(name, 0o755)
        found = readable_installation(Path(name))
        if found is None:
            pytest.skip("no Python here that other users may run")
        yield found


class SharedHost:
    """A service at `store`, and users."""

    def __init__(self, folder: Path, programs: Path) -> None:
        self.store = folder / "store"
        self.store.mkdir()
        os.chown(self.store, SERVICE, SERVICE)
        self.service = HostUser(folder, programs, self.store, SERVICE)
        self.ada, self.bob, self.pat = (
            HostUser(folder, programs, self.store, uid, groups)
            for uid, groups in ((ADA, ()), (BOB, ()), (PAT, (READERS_GID,)))
        )
        self.job_file = folder / "job.py"
        self.job_file.write_text(OBEDIENT_JOB)
        self._log = (folder / "log").open("w+")
        self._processes: list[subprocess.Popen[str]] = []
        self._settings = self.service.home / ".config/tfprof/config.toml"
        self._settings.parent.mkdir(parents=True)
        self.change_settings(f'readers = "{READERS}"', is_reloaded=False)
        self.start()

    def change_settings(self, text: str, *, is_reloaded: bool = True) -> None:
        self._settings.write_text(text + "\n")
        if is_reloaded:
            self.process.send_signal(signal.SIGHUP)

    def start(self, *words: str) -> None:
        """Start the service, and wait until it listens; ``words``: another program that serves."""
        earlier = self.log()
        words = words or ("tfprof", "serve", "--shared")
        self.process = self.service.start(*words, stderr=self._log, start_new_session=True)  # as a service manager
        until(lambda: " for all users" in self.log()[len(earlier) :], "the service")

    def log(self) -> str:
        self._log.seek(0)
        return self._log.read()

    def begin(self, user: HostUser, name: str, count: int = 0) -> "subprocess.Popen[str]":
        """Start a job of ``count`` steps; 0: until it is detached."""
        words = ("tfprof-run", "--name", name, user.programs / "python", self.job_file, count)
        process = user.start(*map(str, words), stderr=subprocess.PIPE)
        self._processes.append(process)
        return process

    def collectors(self) -> list[int]:
        """Return the pids of the running collectors of users."""
        files = (self.service.home / "run").rglob("collector.pid")
        pids = {int(text) for file in files if (text := file.read_text().strip())}
        return sorted(pid for pid in pids - {self.process.pid} if os.path.exists(f"/proc/{pid}"))

    def jobs(self, user: HostUser) -> list[dict[str, object]]:
        done = user.run("tfprof", "jobs", "--json")
        return list(json.loads(done.stdout)["jobs"]) if done.stdout else []

    def names(self, user: HostUser) -> list[object]:
        return sorted(str(job["name"]) for job in self.jobs(user))

    def close(self) -> None:
        for process in self._processes:
            process.kill()
            process.communicate()
        for user in (self.ada, self.bob, self.pat):
            user.stop()
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)
        self._log.close()


@pytest.fixture
def host(programs: Path) -> Iterator[SharedHost]:
    with tempfile.TemporaryDirectory(prefix="t") as name:
        os.chmod(name, 0o755)
        host = SharedHost(Path(name), programs)
        try:
            yield host
        finally:
            host.close()


def _order(user: HostUser, *words: str) -> tuple[bool, str]:
    answer = json.loads(user.run("tfprof", *words, "--json").stdout)["jobs"][0]
    return answer["obeyed"], answer["slug"]


def test_users_see_and_steer_their_own_jobs_and_readers_see_all(host: SharedHost) -> None:
    host.begin(host.ada, "adas")
    job = host.begin(host.bob, "bobs", 50)
    assert job.wait(60) == 0
    assert job.stderr is not None
    assert "50 steps" in job.stderr.read()
    until(lambda: host.names(host.pat) == ["adas", "bobs"], "both jobs")
    assert (host.names(host.ada), host.names(host.bob)) == (["adas"], ["bobs"])
    assert {job["name"]: job["user"] for job in host.jobs(host.pat)} == {"adas": str(ADA), "bobs": str(BOB)}
    assert {job["state"] for job in host.jobs(host.ada)} == {"running"}
    assert "bobs" in host.pat.run("tfprof", "top", "--once", "--all").stdout
    assert "bobs" not in host.ada.run("tfprof", "top", "--once", "--all").stdout
    assert host.ada.run("tfprof", "show", "bobs").returncode == 1
    assert host.pat.run("tfprof", "steps", "bobs").returncode == 0
    assert _order(host.ada, "trace", "adas", "--steps", "3") == (True, None)
    assert _order(host.pat, "trace", "adas", "--steps", "3") == (False, "foreign-job")
    assert host.bob.run("tfprof", "trace", "adas", "--off").returncode == 1
    assert _order(host.ada, "detach", "adas") == (True, None)
    until(lambda: [job["state"] for job in host.jobs(host.ada)] == ["detached"], "the end of the job")
    assert "stop it first [store-in-use]" in host.service.run("tfprof", "serve", "--shared").stderr
    assert "[store-foreign]" in host.ada.run("tfprof", "serve", "--shared").stderr
    assert "run the service there" in host.ada.run("tfprof", "serve").stderr
    assert "a service for all users" in host.ada.run("tfprof", "status").stdout


def test_users_remove_and_tag_their_own_jobs_only(host: SharedHost) -> None:
    host.begin(host.ada, "adas", 30).wait(60)
    running = host.begin(host.ada, "running")
    until(lambda: sorted(str(job["state"]) for job in host.jobs(host.ada)) == ["exited", "running"], "the jobs")
    for words in (("rm", "adas", "--yes"), ("tag", "adas", "bad")):
        assert "[foreign-job]" in host.pat.run("tfprof", *words).stderr
        assert "[no-such-job]" in host.bob.run("tfprof", *words).stderr
    assert host.ada.run("tfprof", "tag", "running", "good", "new").stdout == "good\nnew\n"
    assert host.ada.run("tfprof", "tag", "running", "new", "--remove").stdout == "good\n"
    assert host.pat.run("tfprof", "tag", "running").stdout == "good\n"
    assert "[job-running]" in host.ada.run("tfprof", "rm", "running", "--yes").stderr
    assert host.ada.run("tfprof", "rm", "adas", "--yes").stdout.startswith("removed 1 job")
    assert host.names(host.pat) == ["running"]
    assert len(list((host.store / "users" / str(ADA) / "jobs").iterdir())) == 1
    host.process.send_signal(signal.SIGTERM)
    host.process.wait(60)
    assert "[collector-away]" in host.ada.run("tfprof", "tag", "running", "late").stderr
    running.kill()


def test_a_short_job_waits_for_the_start_of_its_users_collector(host: SharedHost) -> None:
    def errors(name: str) -> str:
        return host.begin(host.ada, name, 20).communicate(timeout=60)[1]

    assert "not-stored" not in errors("first")
    (collector,) = host.collectors()
    host.process.send_signal(signal.SIGHUP)  # it ends the collectors
    until(lambda: host.collectors() != [collector], "the end of the collector")
    assert "not-stored" not in errors("second")
    assert not list(host.ada.home.rglob("tfprof-spool"))


def test_another_user_can_neither_send_order_nor_read(host: SharedHost) -> None:
    host.begin(host.ada, "adas", 30).wait(60)
    until(lambda: [job["state"] for job in host.jobs(host.ada)] == ["exited"], "the end of the job")
    uid = LocalStore(host.store).jobs()[0].info.hex
    before = {path: path.stat().st_mtime_ns for path in (host.store / "users" / str(ADA)).rglob("*")}
    answers = host.bob.python(RAW_AGENT.replace("sys.argv[1]", repr(uid)))
    assert answers.splitlines() == ["131 foreign-job"] * 6
    assert host.names(host.bob) == []
    for path in [host.store / "users", *before]:
        assert host.bob.run("ls", str(path)).returncode != 0
    assert {path: path.stat().st_mtime_ns for path in before if path.name != "store.json"} == {
        path: mtime for path, mtime in before.items() if path.name != "store.json"
    }
    code = RAW_AGENT.replace('"remove": True', '"before": ["forged"], "tags": []')
    mine = host.bob.python(code.replace("sys.argv[1]", repr("abc")))
    assert mine.splitlines() == ["129 None", "9 None", *["129 None"] * 4]
    assert [(job["name"], job["user"]) for job in host.jobs(host.bob)] == [("forged", str(BOB))]
    assert len(host.jobs(host.pat)) == 2
    forbidden = (
        f"ln -s {host.store}/users/{ADA} {host.store}/users/9",
        f"touch {host.store}/x",
        f"rm {host.store}/collector.sock",
        f"ls {host.service.home}/run",
        f"touch {host.store}/users/{BOB}/jobs/x",
    )
    for command in forbidden:
        assert host.bob.run("sh", "-c", command).returncode != 0, command


#: It takes all of a user's connections, half of them silent, half with garbage, until it is ended.
FLOOD = """
import os, socket, time
path, kept, tries = os.environ["TFPROF_STORE"] + "/collector.sock", [], 0
end = time.monotonic() + 6
while time.monotonic() < end:
    client = socket.socket(socket.AF_UNIX)
    client.settimeout(0.2)
    try:
        client.connect(path)
        if tries % 2:
            client.send(os.urandom(4096))
        tries += 1
        kept.append(client)
    except OSError:
        pass
    if len(kept) > 500:
        kept.pop(0).close()
print(tries)
"""


#: Sends messages with pauses until it is told to end. Prints the longest wait for an answer, and by
#: how much the longest pause was too long: the processors may be busy.
STEADY = """
import json, os, select, sys, time
from fakes.wire_agent import WireAgent
from tfprof.formats import wire
agent = WireAgent("", url="ipc://" + os.environ["TFPROF_STORE"] + "/collector.sock")
agent.greet(timeout_s=60)
agent.open(77, name="steady", host="h", user="u")
print("up", flush=True)
waits, delays = [], []
while not select.select([sys.stdin], [], [], 0)[0]:
    start = time.monotonic()
    agent.records(77, [(7, b'{"slug": "fake", "text": "step"}')], first=len(waits) + 1)
    agent.expect(wire.ACK, wire.RECORDS, 60)
    answered = time.monotonic()
    time.sleep(0.02)
    waits.append(answered - start)
    delays.append(time.monotonic() - answered - 0.02)
print(json.dumps([len(waits), max(waits), max(delays)]))
agent.close()
"""


def test_a_flood_of_connections_and_garbage_delays_nobody(host: SharedHost) -> None:
    host.begin(host.ada, "adas")
    steady = host.ada.start("python", "-c", STEADY, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert steady.stdout is not None
    assert steady.stdout.readline() == "up\n"
    until(lambda: host.names(host.ada) == ["adas", "steady"], "the jobs")
    flood = host.bob.start("python", "-c", FLOOD, stdout=subprocess.PIPE)
    waits = []
    while flood.poll() is None:
        start = time.monotonic()
        assert _order(host.ada, "trace", "adas", "--steps", "1") == (True, None)
        waits.append(time.monotonic() - start)
    number, wait_s, delay_s = json.loads(steady.communicate("end")[0])
    assert number > 20
    assert wait_s < 0.5 + 5 * delay_s
    tries = int(flood.communicate()[0])
    assert tries > 1000
    assert max(waits) < 10
    assert host.process.poll() is None
    assert f"user {BOB}: more than 64 connections [user-limit]" in host.log()
    descriptors = len(os.listdir(f"/proc/{host.process.pid}/fd"))
    assert descriptors < 300
    assert _order(host.ada, "detach", "adas") == (True, None)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_is_lost_when_the_service_is_killed_or_restarted(host: SharedHost, number: signal.Signals) -> None:
    jobs = [host.begin(user, "job", 400) for user in (host.ada, host.bob)]
    for _ in range(2):
        time.sleep(1)
        host.process.send_signal(number)
        host.process.wait(60)
        time.sleep(0.5)
        host.start()
    for job in jobs:
        assert job.wait(120) == 0

    def found() -> bool:
        return [job["state"] for job in host.jobs(host.pat)] == ["exited"] * 2

    until(found, "both jobs")
    assert [(job["steps"], job["lost"]) for job in host.jobs(host.pat)] == [(400, 0)] * 2
    for job in LocalStore(host.store).jobs():
        assert job.table("spans").num_rows == 400


def test_the_service_uses_no_processor_time_at_rest(host: SharedHost) -> None:
    host.begin(host.ada, "adas", 20).wait(60)
    host.ada.stop()
    until(lambda: max(cpu_shares(host.process.pid)) < IDLE_SHARE, "rest")


def test_what_is_recorded_without_the_service_is_stored_later(host: SharedHost) -> None:
    host.process.send_signal(signal.SIGTERM)
    host.process.wait(60)
    job = host.begin(host.ada, "away", 50)
    assert job.wait(60) == 0
    assert job.stderr is not None
    errors = job.stderr.read()
    assert "[collector-away]" in errors
    assert "the agent of this host keeps what is not stored" in errors
    host.start()
    until(lambda: [job["state"] for job in host.jobs(host.ada)] == ["exited"], "the job")
    assert [(job["steps"], job["lost"]) for job in host.jobs(host.ada)] == [(50, 0)]


def test_a_reload_applies_to_the_jobs_of_all_users_and_loses_nothing(host: SharedHost) -> None:
    host.begin(host.ada, "ended", 20).wait(60)
    running = host.begin(host.ada, "running", 500)
    until(lambda: host.names(host.pat) == ["ended", "running"], "both jobs")
    host.change_settings('readers = "no such group"')
    until(lambda: "the settings stay as they were" in host.log(), "the refusal")
    assert host.names(host.pat) == ["ended", "running"]
    host.change_settings("")
    until(lambda: host.names(host.pat) == [], "the new list")
    assert host.names(host.ada) == ["ended", "running"]
    assert running.wait(60) == 0
    until(lambda: {job["state"] for job in host.jobs(host.ada)} == {"exited"}, "the end of the job")
    assert [(job["steps"], job["lost"]) for job in host.jobs(host.ada)] == [(20, 0), (500, 0)]
    host.ada.stop()
    host.process.send_signal(signal.SIGTERM)
    host.process.wait(60)
    host.change_settings("keep-days = 1e-7", is_reloaded=False)
    host.start()
    until(lambda: host.names(host.ada) == [], "the removal, without a job or an agent")


IMPATIENT = """
import os
from tfprof.collector.sharing import users, watch
from tfprof.collector.sharing.__main__ import main
users.CHECK_S, watch.CHECKS = 0.5, 10
main(["--store", os.environ["TFPROF_STORE"]])
"""


def test_a_collector_that_hangs_is_replaced_and_nothing_is_lost(host: SharedHost) -> None:
    host.process.send_signal(signal.SIGTERM)
    host.process.wait(60)
    host.start("python", "-c", IMPATIENT)
    jobs = [host.begin(user, "job", 400) for user in (host.ada, host.bob)]
    until(lambda: host.names(host.pat) == ["job"] * 2, "the jobs")
    stopped, kept = host.collectors()
    os.kill(stopped, signal.SIGSTOP)
    until(lambda: "hung for" in host.log(), "the end of the collector")
    for job in jobs:
        job.wait(60)
    until(lambda: [job["state"] for job in host.jobs(host.pat)] == ["exited"] * 2, "the end of the jobs")
    assert [(job["steps"], job["lost"]) for job in host.jobs(host.pat)] == [(400, 0)] * 2
    assert kept in host.collectors()


def test_a_reader_that_keeps_files_locked_stops_nobody(host: SharedHost) -> None:
    host.begin(host.ada, "first", 20).wait(60)
    until(lambda: host.names(host.pat) == ["first"], "the job")
    code = f"""
import fcntl, glob, sys, time
files = [open(path) for path in glob.glob("{host.store}/users/{ADA}/*/*.lock") + glob.glob("{host.store}/store.json")]
for file in files:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        fcntl.flock(file, fcntl.LOCK_EX)
print("held", flush=True)
time.sleep(60)
"""
    holder = host.pat.start("python", "-c", code, stdout=subprocess.PIPE)
    try:
        host.process.send_signal(signal.SIGTERM)
        host.process.wait(60)
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        host.start()
        assert host.begin(host.ada, "second", 20).wait(60) == 0
        until(lambda: host.names(host.ada) == ["first", "second"], "the second job")
    finally:
        holder.kill()
        holder.communicate()


def test_a_short_job_after_an_earlier_agent_left_a_spool_is_stored_at_its_end(host: SharedHost) -> None:
    host.process.send_signal(signal.SIGTERM)
    host.process.wait(60)
    for name in ("first", "second"):
        assert "[collector-away]" in host.begin(host.ada, name, 20).communicate(timeout=60)[1]
        host.ada.stop()
    assert len(list(host.ada.home.rglob("*.segment"))) > 1
    host.start()
    errors = host.begin(host.ada, "next", 20).communicate(timeout=60)[1]
    assert "20 steps" in errors
    assert "not stored" not in errors
    assert host.names(host.ada) == ["first", "next", "second"]
