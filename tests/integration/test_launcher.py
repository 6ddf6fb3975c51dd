"""A job under `tfprof-run` has the arguments, streams, signals and exit status of the command."""

import json
import os
import re
import resource
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from fakes.channel_job import OPEN_CHANNEL
from fakes.daemon_pids import ready_pid
from fakes.polling import until
from tfprof.agent import launches
from tfprof.commands import daemons
from tfprof.formats import runtime_dir

pytestmark = pytest.mark.usefixtures("private_store")

RUN = [sys.executable, "-m", "tfprof.agent.launcher.run"]


def run(*command: str, **options) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*RUN, *command], capture_output=True, text=True, timeout=60, check=False, **options)


@pytest.mark.parametrize("status", [0, 1, 7, 255])
def test_the_exit_status_is_that_of_the_job(status: int) -> None:
    assert run("--quiet", "sh", "-c", f"exit {status}").returncode == status


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV, signal.SIGPIPE, signal.SIGXFSZ])
def test_the_launcher_of_a_job_killed_by_a_signal_ends_by_that_signal(number: signal.Signals) -> None:
    assert run("--quiet", "sh", "-c", f"kill -{int(number)} $$").returncode == -number


def test_a_shell_script_ends_when_ctrl_c_ends_its_job() -> None:
    """After Ctrl-C a shell runs the next command of a script, unless SIGINT ended the last one."""
    command = shlex.join([*RUN, "--quiet", "sh", "-c", "echo up; exec sleep 60"])
    with subprocess.Popen(
        ["bash", "-c", f"{command}\necho continued"], stdout=-1, text=True, start_new_session=True
    ) as shell:
        assert shell.stdout.readline() == "up\n"
        os.killpg(shell.pid, signal.SIGINT)
        assert shell.stdout.read() == ""
    assert shell.returncode == -signal.SIGINT


def test_a_crash_leaves_only_the_core_file_of_the_job(tmp_path: Path) -> None:
    pattern = Path("/proc/sys/kernel/core_pattern").read_text()
    if "|" in pattern or "/" in pattern:
        pytest.skip(f"the host's core files go elsewhere: {pattern}")
    size = resource.getrlimit(resource.RLIMIT_CORE)
    if size[1] == 0:
        pytest.skip("this user may not write core files")
    script = 'ulimit -c "$(ulimit -H -c)"; exec "$@"'
    crash = ["sh", "-c", "kill -SEGV $$"]
    completed = subprocess.run(["bash", "-c", script, "bash", *RUN, "--quiet", *crash], cwd=tmp_path, check=False)
    assert completed.returncode == -signal.SIGSEGV
    assert len(list(tmp_path.glob("core*"))) == 1


@pytest.mark.parametrize("word", ["train.py", "./train.py"])
def test_a_python_file_that_is_no_command_is_run_by_the_python_on_path(
    word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "train.py").write_text("import sys; print(sys.argv, sys.executable)")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/python3").symlink_to(sys.executable)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    completed = run(word, "--epochs", "2")
    assert completed.stdout == f"[{word!r}, '--epochs', '2'] {tmp_path}/bin/python3\n"
    (tmp_path / "bin/python3").unlink()
    assert run(word).returncode == (127 if word == "train.py" else 126)


@pytest.mark.parametrize(
    ("command", "status", "message"),
    [
        ("no-such-command", 127, "no-such-command: command not found"),
        ("./no-such-file", 127, "./no-such-file: No such file or directory"),
        ("/", 126, "/: Is a directory"),
        ("/etc/passwd", 126, "/etc/passwd: Permission denied"),
    ],
)
def test_a_command_that_cannot_run_has_the_message_and_status_of_a_shell(
    command: str, status: int, message: str
) -> None:
    completed = run(command)
    assert (completed.returncode, completed.stdout, completed.stderr) == (
        status,
        "",
        f"tfprof-run: {message} [not-started]\n",
    )
    completed = run("--exec", command)
    assert (completed.returncode, completed.stderr) == (status, f"tfprof-run: {message} [not-started]\n")


def test_a_missing_interpreter_has_another_message_than_a_missing_script(tmp_path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    completed = run(str(script))
    assert (completed.returncode, completed.stderr) == (
        127,
        f"tfprof-run: {script}: cannot execute: required file not found [not-started]\n",
    )


def test_a_script_without_an_interpreter_line_runs_in_a_shell(tmp_path) -> None:
    script = tmp_path / "script"
    script.write_text('echo "$0 $1"\nexit 5\n')
    script.chmod(0o755)
    completed = run("--quiet", str(script), "one")
    assert (completed.returncode, completed.stdout) == (5, f"{script} one\n")


@pytest.mark.parametrize(
    ("arguments", "slug"),
    [
        ([], "usage"),
        (["--trace", "sometimes", "touch", "RAN"], "trace-policy"),
        (["--trace", "every=0", "touch", "RAN"], "trace-policy"),
        (["--trace-level", "loud", "touch", "RAN"], "trace-policy"),
        (["--ring", "12", "touch", "RAN"], "usage"),
        (["--ring", "much", "touch", "RAN"], "usage"),
        (["--no-such-option", "touch", "RAN"], "usage"),
        (["--store"], "usage"),
    ],
)
def test_a_bad_option_is_one_line_of_error_and_the_job_does_not_start(
    tmp_path, arguments: list[str], slug: str
) -> None:
    completed = run(*arguments, cwd=tmp_path)
    assert completed.returncode == 2
    assert completed.stdout == ""
    assert completed.stderr.startswith("tfprof-run: ")
    assert completed.stderr.endswith(f"[{slug}]\n")
    assert completed.stderr.count("\n") == 1
    assert not (tmp_path / "RAN").exists()


def test_options_after_the_command_belong_to_the_command() -> None:
    completed = run("--quiet", "--", "echo", "--trace", "x", "--", "--quiet")
    assert completed.stdout == "--trace x -- --quiet\n"
    assert run("--quiet", "printf", "%s", "--version").stdout == "--version"


def test_help_and_version() -> None:
    assert "examples:" in run("--help").stdout
    assert run("--version").stdout.startswith("tfprof ")


def test_the_job_has_the_standard_streams_of_the_launcher() -> None:
    completed = run("--quiet", "sh", "-c", "cat; echo err >&2", input="in\n")
    assert (completed.stdout, completed.stderr) == ("in\n", "err\n")


def test_a_command_without_tensorflow_ends_with_one_line_of_report() -> None:
    completed = run("sh", "-c", "echo job >&2; exit 3")
    assert completed.returncode == 3
    assert completed.stderr == "job\ntfprof: no profile: nothing in this command loaded TensorFlow [no-tensorflow]\n"


def test_an_older_announcement_of_another_launch_is_ignored(private_store) -> None:
    instance_dir = Path(runtime_dir.make_instance(str(private_store)))
    stale = instance_dir / "announce" / "999999999-00000000000000ff"
    stale.write_text("channel\n")
    os.utime(stale, (1, 1))
    completed = run("sleep", "2.1")
    assert completed.stderr == "tfprof: no profile: nothing in this command loaded TensorFlow [no-tensorflow]\n"


@pytest.mark.parametrize("options", [[], ["--exec"]])
def test_an_interpreter_that_cannot_be_armed_is_reported_in_one_line(options: list[str]) -> None:
    completed = run(*options, sys.executable, "-I", "-c", "print(1)")
    assert (completed.returncode, completed.stdout) == (0, "1\n")
    assert completed.stderr.count("\n") == 1
    assert "-I" in completed.stderr


SHOW_ENVIRONMENT = """
import json, os, sys
with open("/proc/self/environ") as file:
    print(json.dumps([sys.path, sorted(file.read().split(chr(0)))]))
"""


@pytest.mark.parametrize("way", ["option", "link", "script"])
def test_a_python_without_site_has_neither_our_folder_on_its_path_nor_our_variables(tmp_path: Path, way: str) -> None:
    """Nothing in such a Python would remove the folder."""
    (tmp_path / "python3.11").symlink_to(sys.executable)
    (tmp_path / "script").write_text(f"#!{sys.executable} -S\n{SHOW_ENVIRONMENT}")
    (tmp_path / "script").chmod(0o755)
    python = [sys.executable] if way == "option" else [str(tmp_path / "python3.11")]
    command = [str(tmp_path / "script")] if way == "script" else [*python, "-S", "-c", SHOW_ENVIRONMENT]
    completed = run(*command)
    bare = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert (completed.returncode, completed.stdout) == (0, bare.stdout)
    assert completed.stderr == "tfprof: no profile: python -S does not load the shim [not-armed]\n"


def test_a_closed_standard_error_is_no_error() -> None:
    script = f"{' '.join(RUN)} sh -c 'exit 4' 2>&-"
    completed = subprocess.run(["sh", "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert (completed.returncode, completed.stdout, completed.stderr) == (4, "", "")


PRINT_STATE = """
import json, os, signal
ignored = [int(n) for n in signal.valid_signals() if n not in (9, 19) and signal.getsignal(n) == signal.SIG_IGN]
lines = dict(line.split(":", 1) for line in open("/proc/self/status").read().splitlines() if ":" in line)
print(json.dumps({"blocked": lines["SigBlk"].strip(), "ignored": lines["SigIgn"].strip(),
                  "group": os.getpgrp() - os.getpgid(os.getppid()), "umask": os.umask(0), "cwd": os.getcwd(),
                  "fds": sorted(os.listdir("/proc/self/fd"))}))
"""


def _state(prefix: list[str]) -> dict:
    options = {
        "preexec_fn": lambda: (signal.signal(1, signal.SIG_IGN), signal.signal(17, signal.SIG_IGN), _block_sigusr1())
    }
    command = [*prefix, sys.executable, "-c", PRINT_STATE]
    return json.loads(subprocess.run(command, capture_output=True, text=True, timeout=60, check=True, **options).stdout)


def _block_sigusr1() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])


def test_the_job_inherits_the_signals_files_and_group_of_the_launcher() -> None:
    state_without_launcher = _state([])
    assert _state([*RUN, "--quiet"]) == {**state_without_launcher, "group": 0}
    assert _state([*RUN, "--exec", "--quiet"])["blocked"] == state_without_launcher["blocked"]


def test_nohup_applies_to_the_job() -> None:
    completed = subprocess.run(
        ["nohup", *RUN, "--quiet", "sh", "-c", "kill -HUP $$; echo on"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (completed.returncode, completed.stdout) == (0, "on\n")


TRAP = """
import signal, sys, time
got = []
for n in (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGINT, signal.SIGRTMIN + 2):
    signal.signal(n, lambda n, f: got.append(n))
print("up", flush=True)
end = time.time() + 20
while len(got) < int(sys.argv[1]) and time.time() < end: time.sleep(0.01)
time.sleep(0.3)
print(*got, flush=True)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGINT, signal.SIGRTMIN + 2])
def test_a_signal_to_the_launcher_reaches_the_job_once(number: int) -> None:
    with subprocess.Popen([*RUN, "--quiet", sys.executable, "-c", TRAP, "1"], stdout=-1, text=True) as launcher:
        assert launcher.stdout.readline() == "up\n"
        launcher.send_signal(number)
        assert launcher.stdout.readline() == f"{int(number)}\n"
    assert launcher.returncode == 0


def test_a_signal_that_the_job_sends_to_its_group_reaches_it_once() -> None:
    code = (
        "import os, signal, time\ngot = []\nsignal.signal(15, lambda n, f: got.append(n))\n"
        "os.kill(0, 15)\ntime.sleep(0.5)\nprint(*got)"
    )
    completed = subprocess.run(
        [*RUN, "--quiet", sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        start_new_session=True,
    )
    assert (completed.returncode, completed.stdout) == (0, "15\n")


def test_the_launcher_stops_and_continues_with_its_job() -> None:
    code = "import os; print(os.getpid(), flush=True); input(); print('on')"
    launcher = subprocess.Popen([*RUN, "--quiet", sys.executable, "-c", code], stdin=-1, stdout=-1, text=True)
    job = int(launcher.stdout.readline())
    os.kill(job, signal.SIGSTOP)
    _, status = os.waitpid(launcher.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status)
    assert os.WSTOPSIG(status) == signal.SIGSTOP
    launcher.send_signal(signal.SIGCONT)
    assert launcher.communicate("\n", timeout=30)[0] == "on\n"
    assert launcher.returncode == 0


def test_with_exec_the_launcher_becomes_the_job() -> None:
    with subprocess.Popen([*RUN, "--exec", "sh", "-c", "echo $$; exit 6"], stdout=-1, text=True) as launcher:
        assert int(launcher.stdout.readline()) == launcher.pid
    assert launcher.returncode == 6


def test_the_environment_of_the_job_names_the_shim_and_the_launch(private_store) -> None:
    code = (
        "import json, os;"
        " print(json.dumps({k: v for k, v in os.environ.items() if 'TFPROF' in k or k == 'PYTHONPATH'}))"
    )
    environ = json.loads(run("--quiet", "--trace", "every=7", "--ring", "8M", "env", "-", "true").stdout or "{}")
    assert environ == {}
    environ = json.loads(run("--quiet", "--trace", "every=7", "--ring", "8M", sys.executable, "-c", code).stdout)
    launch, _, instance_dir = environ["TFPROF_RUN"].partition("@")
    assert instance_dir == runtime_dir.instance_dir(str(private_store))
    assert len(launch) == 16
    assert environ["TFPROF_TRACE"] == "every=7"
    assert environ["TFPROF_RING"] == "8M"
    assert environ["PYTHONPATH"].split(":")[0].endswith("/shim/inject")


def test_the_launch_file_has_the_name_and_the_end_but_the_command_only_on_request(private_store, monkeypatch) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "77")
    monkeypatch.setenv("SECRET", "hush")
    run("--quiet", "--name", "nightly", "sh", "-c", "exit 9")
    run("--quiet", "--record-command", "sh", "-c", "kill -9 $$")
    instance_dir = runtime_dir.instance_dir(str(private_store))
    first, second = sorted(
        (launches.read(instance_dir, launch) for launch in launches.list_launches(instance_dir)),
        key=lambda launch: launch.started_ns,
    )
    assert (first.name, first.status, first.signal, first.command) == ("nightly", 9, None, None)
    assert first.tags["slurm_job_id"] == "77"
    assert "hush" not in json.dumps(first)
    assert (second.status, second.signal, second.command) == (None, 9, ["sh", "-c", "kill -9 $$"])


@pytest.mark.parametrize("problem", ["file", "open", "long"])
def test_without_a_runtime_folder_the_job_runs_and_one_line_gives_the_reason(
    tmp_path, monkeypatch, problem: str
) -> None:
    runtime = tmp_path / ("x" * 120 if problem == "long" else "other")
    runtime.mkdir()
    if problem == "file":
        (runtime / "tfprof").write_text("")
    elif problem == "open":
        (runtime / "tfprof").mkdir(mode=0o777)
        (runtime / "tfprof").chmod(0o777)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    completed = run("sh", "-c", "echo ${TFPROF_RUN-none}; exit 2")
    assert (completed.returncode, completed.stdout) == (2, "none\n")
    assert completed.stderr.startswith("tfprof: no profile: ")
    assert completed.stderr.endswith(" [runtime-dir]\n")
    assert completed.stderr.count("\n") == 1


JOB = f"""{OPEN_CHANNEL}
for number in range(1, int(sys.argv[1]) + 1):
    while not writer.put(json.dumps({{"slug": "fake", "text": str(number)}}).encode()): time.sleep(0.01)
    writer.put_span(number)
    time.sleep(float(sys.argv[2]))
print("done", flush=True)
"""


def test_a_profiled_job_is_stored_and_reported(private_store) -> None:
    completed = run("--name", "nightly", sys.executable, "-c", JOB, "200", "0.001")
    assert (completed.returncode, completed.stdout) == (0, "done\n")
    assert completed.stderr.startswith("tfprof: job ")
    assert "nightly" in completed.stderr
    assert "200 steps" in completed.stderr
    assert "0 lost" in completed.stderr
    instance_dir = runtime_dir.instance_dir(str(private_store))
    (launch,) = launches.list_launches(instance_dir)
    result = launches.read_result(instance_dir, launch)
    assert result.complete
    assert [(job["state"], job["records"], job["acked"]) for job in result.jobs] == [("exited", 200, 200)]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make PID namespaces")
def test_a_job_in_a_pid_namespace_is_found(private_store) -> None:
    completed = run("unshare", "-pf", "--mount-proc", sys.executable, "-c", JOB, "50", "0.01")
    assert (completed.returncode, completed.stdout) == (0, "done\n")
    assert "50 steps" in completed.stderr


def test_a_job_whose_agent_and_collector_are_killed_loses_nothing(private_store) -> None:
    instance_dir = runtime_dir.instance_dir(str(private_store))
    with subprocess.Popen(
        [*RUN, sys.executable, "-c", JOB, "1500", "0.01"], stdout=-1, stderr=-1, text=True
    ) as launcher:
        for name in ("collector", "agent") * 3:
            pid = until(lambda name=name: ready_pid(instance_dir, name), f"the {name}")
            assert launcher.poll() is None
            os.kill(pid, signal.SIGKILL)
            until(lambda name=name, pid=pid: daemons.running_pid(instance_dir, name) != pid)
        stdout, stderr = launcher.communicate(timeout=60)
    assert stdout == "done\n"
    assert "1,500 steps" in stderr
    assert "0 lost" in stderr
    (launch,) = launches.list_launches(instance_dir)
    (job,) = launches.read_result(instance_dir, launch).jobs
    assert (job["acked"], job["dropped_records"], job["dropped_spans"]) == (1500, 0, 0)


#: Runs nine jobs, and prints how many descriptors the launcher has after each one is stored.
LOOP = """
for number in 1 2 3 4 5 6 7 8 9; do
    "$0" -c "$1" 3 0.2 > /dev/null
    while [ -n "$(ls ${TFPROF_RUN#*@}/announce)" ]; do sleep 0.05; done
    sleep 0.7
    ls /proc/$PPID/fd | wc -l
done
"""


def test_the_channels_of_stored_jobs_are_closed_while_the_command_runs(private_store) -> None:
    completed = run("sh", "-c", LOOP, sys.executable, JOB)
    counts = [int(line) for line in completed.stdout.split()]
    assert counts[8] <= max(counts[:3]) + 1  # a descriptor may be open for a moment
    assert completed.stderr.count("3 steps") == 3
    assert "6 more processes" in completed.stderr
    (launch,) = launches.list_launches(runtime_dir.instance_dir(str(private_store)))
    result = launches.read_result(runtime_dir.instance_dir(str(private_store)), launch)
    assert [job["acked"] for job in result.jobs] == [3] * 9


def test_jobs_that_an_earlier_agent_has_stored_are_reported(private_store) -> None:
    """A later agent does not know them, since nobody holds their channels any more."""
    kill = "\nkill -9 $(sed 's/[^0-9].*//' ${TFPROF_RUN#*@}/agent.pid)\nsleep 1"
    completed = run("sh", "-c", LOOP.replace(" 4 5 6 7 8 9", "") + kill, sys.executable, JOB)
    assert completed.stderr.count("3 steps") == 3
    assert "no profile" not in completed.stderr
    (launch,) = launches.list_launches(runtime_dir.instance_dir(str(private_store)))
    result = launches.read_result(runtime_dir.instance_dir(str(private_store)), launch)
    assert (result.complete, result.jobs) == (True, [])


def test_with_an_unwritable_store_the_job_runs_without_a_profile(tmp_path) -> None:
    (tmp_path / "store").write_text("a file")
    completed = run("--store", str(tmp_path / "store"), sys.executable, "-c", JOB, "10", "0.1")
    assert (completed.returncode, completed.stdout) == (0, "done\n")
    assert completed.stderr.startswith(f"tfprof: no profile: cannot write {tmp_path / 'store'}: File exists")
    assert completed.stderr.count("\n") == 1
    subprocess.run(
        [sys.executable, "-m", "tfprof.cli.main", "stop", "--store", str(tmp_path / "store")],
        capture_output=True,
        timeout=30,
        check=False,
    )


def test_without_an_agent_the_job_runs_without_a_profile(monkeypatch) -> None:
    monkeypatch.setenv("TFPROF_AGENT_IDLE", "soon")
    completed = run(sys.executable, "-c", JOB, "10", "0.1")
    assert (completed.returncode, completed.stdout) == (0, "done\n")
    assert completed.stderr.startswith("tfprof: no profile: TFPROF_AGENT_IDLE: 'soon' is not a time in seconds")
    assert completed.stderr.endswith(" [usage]\n")
    assert completed.stderr.count("\n") == 1


def test_a_refused_channel_is_reported_with_its_reason() -> None:
    code = """
import os, sys, time
launch, _, folder = os.environ["TFPROF_RUN"].partition("@")
open(f"{folder}/announce/{os.getpid()}-00000000000000ff", "w").write("refused memfd-refused no such call\\n")
time.sleep(1)
"""
    completed = run(sys.executable, "-c", code)
    assert completed.stderr == "tfprof: no profile: no such call [memfd-refused]\n"


def test_a_series_runs_in_turns_and_ends_with_the_first_run_that_fails() -> None:
    completed = run("--repeat", "2", "--alternate", "sh -c 'echo new'", "sh", "-c", "echo old")
    assert (completed.returncode, completed.stdout.split()) == (0, ["old", "new"] * 2)
    assert "tfprof: run 4 of 4, after" in completed.stderr
    completed = run("--quiet", "--repeat", "2", "--alternate", "sh -c 'exit 7'", "sh", "-c", "echo old")
    assert (completed.returncode, completed.stdout, completed.stderr) == (7, "old\n", "")


def test_ctrl_c_ends_a_series_even_if_the_run_ends_well() -> None:
    job = "trap 'echo end; exit 0' INT; echo up; sleep 20 > /dev/null 2>&1 & wait"
    with subprocess.Popen(
        [*RUN, "--repeat", "3", "sh", "-c", job], stdout=-1, stderr=-1, text=True, start_new_session=True
    ) as launcher:
        assert launcher.stdout.readline() == "up\n"
        os.killpg(launcher.pid, signal.SIGINT)
        output, errors = launcher.communicate(timeout=60)
    assert (launcher.returncode, output) == (-signal.SIGINT, "end\n")
    assert re.search("tfprof: SIGINT ended the series (in run 1|before run 2) of 3\n", errors)  # the job may end first


def test_the_runs_of_a_series_leave_no_descriptors_behind() -> None:
    """Each run has pipes of its witness, channels, and a watch of the runtime folder."""
    completed = run("--quiet", "--repeat", "5", "sh", "-c", "ls /proc/$PPID/fd | wc -l")
    counts = [int(line) for line in completed.stdout.split()]
    assert counts[4] <= max(counts[:3]) + 1  # a descriptor may be open for a moment
