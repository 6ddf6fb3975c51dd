"""`tfprof serve` prints and installs a unit for the collector that the jobs of a user use.

Tests commands/service_unit.py.
"""

import os
import pwd
import shutil
import subprocess

import pytest
from fakes.command import caller
from tfprof.commands import service_unit, settings_files

HOSTILE = 'a b%n$X"\\'


@pytest.fixture
def run(capsys, private_store, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setattr(settings_files, "HOST_FILE", str(tmp_path / "host.toml"))
    monkeypatch.setattr(settings_files, "paths_by_variable", {})
    monkeypatch.setenv("TFPROF_KEEP_DAYS", "")  # a value from a file is removed at the end, too
    monkeypatch.delenv("SUDO_USER", raising=False)
    return caller(capsys)


@pytest.fixture
def systemctl(tmp_path, monkeypatch):
    """A systemctl that records its arguments, and fails if a file `fail` exists."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "systemctl").write_text(
        '#!/bin/sh\necho "$@" >> "$0.log"\n[ ! -e "$0.fail" ] || { echo no bus >&2; exit 1; }\n'
    )
    (folder / "systemctl").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return folder / "systemctl"


def lines_of(text, key):
    return [line.removeprefix(f"{key}=") for line in text.splitlines() if line.startswith(f"{key}=")]


def test_a_users_unit_has_the_folders_and_settings_of_the_shell(run, tmp_path, monkeypatch):
    (tmp_path / "config/tfprof").mkdir(parents=True)
    (tmp_path / "config/tfprof/config.toml").write_text("keep-days = 3\n")
    monkeypatch.setenv("TFPROF_ALERT_COMMAND", HOSTILE)
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))  # without XDG_RUNTIME_DIR, it has the runtime folder
    status, text, errors = run("serve", "--print")
    assert (status, errors) == (0, "")
    environment = lines_of(text, "Environment")
    assert f"XDG_RUNTIME_DIR={tmp_path}/run" in environment
    assert f"XDG_STATE_HOME={tmp_path}/state" in environment
    assert f"TMPDIR={tmp_path}/tmp" in environment
    assert '"TFPROF_ALERT_COMMAND=a b%%n$X\\"\\\\"' in environment
    assert not [line for line in environment if "KEEP_DAYS" in line], "a value from a file can be reloaded"
    assert lines_of(text, "ExecStart")[0].endswith(" serve")
    assert lines_of(text, "WantedBy") == ["default.target"]


def test_a_systems_unit_runs_as_the_user_and_shares_the_users_runtime_folder(run):
    account = pwd.getpwnam("nobody")
    status, text, _ = run("serve", "--print", "--system", "--user", "nobody", "--store", f"/{HOSTILE}")
    assert status == 0
    assert lines_of(text, "User") == ["nobody"]
    assert lines_of(text, "Environment") == [f"XDG_RUNTIME_DIR=/run/user/{account.pw_uid}"]
    assert lines_of(text, "Requires") == [f"user-runtime-dir@{account.pw_uid}.service"]
    assert lines_of(text, "ExecStart")[0].endswith(' serve --store "/a b%%n$$X\\"\\\\"')


def test_the_unit_for_all_users_has_a_user_and_folders_of_its_own(run, monkeypatch):
    monkeypatch.setenv("TFPROF_ALERT_COMMAND", "of the user who installs it")
    status, text, _ = run("serve", "--print", "--system")
    assert status == 0
    assert lines_of(text, "User") == ["tfprof"]
    assert lines_of(text, "Environment") == ["XDG_RUNTIME_DIR=/run/tfprof"]
    assert lines_of(text, "StateDirectory") == ["tfprof"]
    assert lines_of(text, "OOMPolicy") == ["continue"], "the collector of one user ends alone"
    assert lines_of(text, "ExecStart")[0].endswith(" serve --store /var/lib/tfprof --shared")
    text = run("serve", "--print", "--system", "--shared", "--store", "/srv/tfprof")[1]
    assert lines_of(text, "StateDirectory") == []
    assert lines_of(text, "ExecStart")[0].endswith(" serve --store /srv/tfprof --shared")


def test_the_user_of_the_service_is_made_once(run, tmp_path, systemctl, monkeypatch):
    monkeypatch.setattr(service_unit, "SYSTEM_FOLDER", str(tmp_path / "units"))
    (systemctl.parent / "useradd").write_text('#!/bin/sh\necho "$@" >> "$0.log"\n')
    (systemctl.parent / "useradd").chmod(0o755)
    for name in ("no-such-account", pwd.getpwuid(os.geteuid()).pw_name):
        monkeypatch.setattr("tfprof.cli.serve.SHARED_USER", name)
        status, out, errors = run("serve", "--install", "--system")
        assert (status, errors) == (0, "")
        assert out.splitlines()[-1].endswith(': store = "/var/lib/tfprof"')
    calls = (systemctl.parent / "useradd.log").read_text().splitlines()
    assert [call.split()[-1] for call in calls] == ["no-such-account"]
    assert "enable tfprof.service" in systemctl.with_name("systemctl.log").read_text().splitlines()


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
@pytest.mark.parametrize(
    ("options", "make_unit"),
    [
        (["--user"], lambda _account: service_unit.user_unit(f"/{HOSTILE}")),
        ([], lambda account: service_unit.system_unit(None, account)),
        ([], lambda _account: service_unit.shared_unit(service_unit.SHARED_STORE)),
    ],
)
def test_systemd_finds_no_fault_in_a_unit(private_store, tmp_path, options, make_unit):
    unit = make_unit(pwd.getpwuid(os.geteuid()))
    path = tmp_path / unit.name
    path.write_text(unit.text.replace("Documentation=man:tfprof(1)\n", ""))
    command = ["systemd-analyze", "verify", *options, str(path)]
    checked = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert [line for line in checked.stderr.splitlines() if "tfprof" in line] == []


def test_a_unit_is_installed_enabled_and_started(run, tmp_path, systemctl):
    status, out, errors = run("serve", "--install")
    assert (status, errors) == (0, "")
    path = tmp_path / "config/systemd/user/tfprof.service"
    assert path.read_text() == run("serve", "--print")[1]
    calls = systemctl.with_name("systemctl.log").read_text().splitlines()
    assert calls == ["--user daemon-reload", "--user enable tfprof.service", "--user restart tfprof.service"]
    assert out.startswith(f"wrote {path}\n")
    assert os.listdir(path.parent) == ["tfprof.service"]


def test_another_unit_is_overwritten_only_with_force(run, tmp_path, systemctl):
    path = tmp_path / "config/systemd/user/tfprof.service"
    path.parent.mkdir(parents=True)
    path.write_text("[Service]\n")
    status, _, errors = run("serve", "--install")
    assert (status, path.read_text()) == (1, "[Service]\n")
    assert errors.endswith(": --force overwrites it [file-exists]\n")
    assert run("serve", "--install", "--force")[0] == 0
    assert run("serve", "--install")[0] == 0, "the same unit may be installed again"


def test_what_systemd_refuses_is_reported(run, systemctl):
    systemctl.with_name("systemctl.fail").touch()
    status, _, errors = run("serve", "--install")
    assert (status, errors) == (1, "tfprof: systemctl --user daemon-reload: no bus [service]\n")


def test_without_systemd_the_unit_is_written(run, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    status, out, _ = run("serve", "--install")
    assert (status, out.splitlines()[1:]) == (0, ["there is no systemctl here, so the service is not enabled"])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--system"], "--system needs --print or --install"),
        (["--print", "--user", "nobody"], "--user needs --system"),
        (["--print", "--force"], "--force needs --install"),
        (["--print", "--shared"], "--shared needs --system: its unit is one of the host"),
        (["--print", "--system", "--shared", "--user", "nobody"], "--user needs a service of one user, not --shared"),
        (["--shared", "--listen", "tcp://127.0.0.1:7"], "--listen needs a service of one user"),
        (["--print", "--system", "--user", "no such user"], "there is no user 'no such user'"),
    ],
)
def test_options_that_have_no_use_are_refused(run, words, message):
    status, _, errors = run("serve", *words)
    assert status == 2
    assert message in errors


def test_a_group_of_readers_that_does_not_exist_is_reported(run, monkeypatch):
    monkeypatch.setenv("TFPROF_READERS", "no such group")
    status, _, errors = run("serve", "--shared")
    assert (status, errors) == (2, "tfprof: the setting readers: there is no group 'no such group' [readers]\n")


def test_an_invalid_setting_is_reported_before_anything_starts(run, monkeypatch):
    monkeypatch.setenv("TFPROF_KEEP_BYTES", "lots")
    assert run("serve")[0] == 2
