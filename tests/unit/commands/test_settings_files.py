"""Settings from files."""

import os
from pathlib import Path

import pytest
from tfprof.agent.launcher import run as launcher
from tfprof.cli import main as cli
from tfprof.commands import settings_files
from tfprof.commands.settings_files import SettingsFileError
from tfprof.formats.settings import SETTINGS


class Files:
    """The settings files of the user and of the host, below ``folder``."""

    def __init__(self, folder: Path) -> None:
        self.user = folder / "user" / "tfprof" / "config.toml"
        self.host = folder / "host.toml"
        self.user.parent.mkdir(parents=True)


@pytest.fixture
def files(tmp_path, monkeypatch):
    folder_files = Files(tmp_path)
    environ = {name: text for name, text in os.environ.items() if not name.startswith("TFPROF_")}
    monkeypatch.setattr(os, "environ", environ | {"XDG_CONFIG_HOME": str(tmp_path / "user")})
    monkeypatch.setattr(settings_files, "HOST_FILE", str(folder_files.host))
    monkeypatch.setattr(settings_files, "paths_by_variable", {})
    return folder_files


def _options(*arguments):
    return launcher.parse([*arguments, "true"])


def test_without_files_nothing_is_set(files):
    assert settings_files.load_into_environment() == {}
    assert _options().changes == {}


def test_an_option_wins_over_the_environment_the_users_file_the_hosts_file_and_the_default(files):
    variable = SETTINGS["ring"].variable
    assert SETTINGS["ring"].read() == 16 << 20
    files.host.write_text('ring = "2M"\nkeep-days = 3')
    assert _options().changes == {variable: "2M"}
    files.user.write_text('ring = "3M"')
    assert _options().changes == {variable: "3M"}
    assert SETTINGS["keep-days"].read() == 3
    os.environ[variable] = "4M"
    settings_files.paths_by_variable.clear()
    assert _options().changes == {}
    assert SETTINGS["ring"].read() == 4 << 20
    assert _options("--ring", "5M").changes == {variable: "5M"}


def test_the_launcher_passes_on_only_the_settings_of_jobs(files):
    files.user.write_text('trace = "all"\ndebug = true\nagent-idle = 0.5\nstore = "/data/kept"')
    options = _options()
    assert options.changes == {"TFPROF_TRACE": "all", "TFPROF_DEBUG": "True"}
    assert options.store == "/data/kept"


def test_a_daemon_does_not_get_values_from_files(files):
    files.user.write_text("keep-days = 2")
    settings_files.load_into_environment()
    assert os.environ["TFPROF_KEEP_DAYS"] == "2"
    assert "TFPROF_KEEP_DAYS" not in settings_files.without_file_values(os.environ)


def test_an_empty_variable_counts_as_unset_and_a_changed_file_is_read_again(files):
    os.environ["TFPROF_RING"] = ""
    files.user.write_text('ring = "3M"')
    assert settings_files.load_into_environment() == {"TFPROF_RING": "3M"}
    files.user.unlink()
    assert settings_files.load_into_environment() == {}
    assert SETTINGS["ring"].read() == 16 << 20


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("rings = 5", "rings"),
        ('ring = "5T"', "ring"),
        ('ring = "1K"', "ring"),
        ("ring = true", "ring"),
        ("ring = [1]", "ring"),
        ('trace = "often"', "trace"),
        ('trace-level = "deep"', "trace-level"),
        ("keep-days = nan", "keep-days"),
        ("keep-days = ''", "keep-days"),
        ("agent-idle = 0", "agent-idle"),
        ("debug = 2", "debug"),
        ('store = "here"', "store"),
        ('store = "/a\\u0000b"', "store"),
        ("keep-days = 1979-05-27", "keep-days"),
        ("[ring]\nsize = 5", "ring"),
        ('run = "1@/tmp"', "run"),
        ("raise = true", "raise"),
    ],
)
def test_an_error_names_file_and_key(files, text, key):
    files.host.write_text(text)
    with pytest.raises(SettingsFileError) as caught:
        settings_files.load_into_environment()
    assert str(caught.value).startswith(f"{files.host}: {key}")
    assert str(caught.value).endswith("[settings-file]")
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    "text", [b"ring", b"ring = ", b"\xff", b"a = " + b"[" * 5000, b"#" * (settings_files.FILE_MAX + 1)]
)
def test_invalid_toml_is_refused(files, text):
    files.user.write_bytes(text)
    with pytest.raises(SettingsFileError, match=str(files.user)):
        settings_files.load_into_environment()


def test_a_file_that_is_not_regular_or_that_any_user_can_write_is_refused(files, monkeypatch):
    os.mkfifo(files.user)
    with pytest.raises(SettingsFileError, match="not a regular file"):
        settings_files.load_into_environment()
    files.user.unlink()
    files.host.write_text("keep-days = 1")
    files.user.symlink_to(files.host)
    assert settings_files.load_into_environment() == {"TFPROF_KEEP_DAYS": "1"}
    files.host.chmod(0o646)
    with pytest.raises(SettingsFileError, match="any user can write it"):
        settings_files.load_into_environment()
    files.host.chmod(0o600)
    files.user.unlink()
    files.user.mkdir()
    with pytest.raises(SettingsFileError, match="not a regular file"):
        settings_files.load_into_environment()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can change its user")
def test_a_file_in_a_folder_without_access_is_ignored(files):
    files.host.write_text("[broken")
    files.host.parent.chmod(0o700)
    pid = os.fork()
    if pid == 0:
        os.setgroups([])
        os.setuid(65534)
        os._exit(len(settings_files.load_into_environment()))
    assert os.waitpid(pid, 0)[1] == 0


def test_the_launcher_and_the_commands_refuse_a_bad_file(files, capsys):
    files.user.write_text("rings = 5")
    assert launcher.main(["true"]) == 2
    with pytest.raises(SystemExit) as caught:
        cli.main(["config"])
    assert caught.value.code == 2
    messages = capsys.readouterr().err.splitlines()
    assert [line.partition(": ")[0] for line in messages] == ["tfprof-run", "tfprof"]
    assert all(f"{files.user}: rings is not a setting" in line for line in messages)


def test_config_says_where_each_value_comes_from(files, tmp_path, capsys):
    files.user.write_text('ring = "3M"')
    files.host.write_text("keep-days = 7")
    os.environ["TFPROF_TRACE"] = "all"
    with pytest.raises(SystemExit) as caught:
        cli.main(["config", "--store", str(tmp_path)])
    assert not caught.value.code
    rows = {line.split()[0]: line.split() for line in capsys.readouterr().out.splitlines()[1:]}
    assert rows["ring"][1:] == ["3M", str(files.user)]
    assert rows["keep-days"][1:] == ["7", str(files.host)]
    assert rows["trace"][1:] == ["all", "environment"]
    assert rows["store"][1:] == [str(tmp_path), "option"]
    assert rows["trace-level"][1:] == ["auto", "default"]
    assert set(rows) == set(SETTINGS) - settings_files.NOT_IN_FILES


def test_the_python_api_opens_the_store_of_the_commands_and_changes_no_environment(files, tmp_path):
    from fakes import small_store
    from tfprof.collector import open_store

    stores = [small_store.write(tmp_path / name) for name in ("host's", "user's", "environment's", "argument's")]

    def opened_path(*arguments):
        before = dict(os.environ)
        path = open_store(*arguments)._store.path
        assert dict(os.environ) == before
        return path

    for store, set_store in (
        (stores[0], lambda: files.host.write_text(f'store = "{stores[0]}"\n')),
        (stores[1], lambda: files.user.write_text(f'store = "{stores[1]}"\n')),
        (stores[2], lambda: os.environ.update(TFPROF_STORE=str(stores[2]))),
    ):
        set_store()
        assert opened_path() == Path(store) == Path(settings_files.store())
        for variable in settings_files.paths_by_variable:
            del os.environ[variable]
        settings_files.paths_by_variable.clear()
    assert opened_path(stores[3]) == Path(stores[3])


def test_the_python_api_says_what_is_wrong_with_a_settings_file(files):
    from tfprof.collector import open_store

    files.user.write_text("store = 7\n")
    with pytest.raises(SettingsFileError, match="store"):
        open_store()
