"""Files with keys: their modes, their content, and what is refused."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes import node_keys
from tfprof.commands import key_files
from tfprof.commands.key_files import KeyFileError, NodeKey
from tfprof.formats.errors import UsageError


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return tmp_path / "tfprof"


@pytest.fixture(params=[0o000, 0o777], ids=["open umask", "closed umask"])
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


def node_key_file(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "collector.key"
    key_files.write_node_key(str(path), NodeKey("node1", node_keys.new_pair(), node_keys.new_pair().public))
    return path


@pytest.mark.usefixtures("umask")
def test_a_new_file_is_its_owners_alone_whatever_the_umask(tmp_path: Path) -> None:
    key_files.write_new(str(tmp_path / "k"), {"a": "b"})
    assert (tmp_path / "k").stat().st_mode & 0o777 == 0o600


def test_what_is_written_is_read(folder: Path) -> None:
    pair = node_keys.make_collector()
    assert key_files.collector_pair() == pair
    key = node_keys.add("node1", pair)
    node_keys.add("node2", pair)
    key_files.change_nodes("node2", None)
    assert key_files.nodes() == {"node1": key.pair.public}
    path = folder / "collector.key"
    key_files.write_node_key(str(path), key)
    assert key_files.node_key(key_files.node_key_path("")) == key
    assert {file.stat().st_mode & 0o777 for file in folder.rglob("*") if file.is_file()} == {0o600}


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o660])
def test_a_key_that_others_can_read_is_refused(folder: Path, mode: int) -> None:
    path = node_key_file(folder)
    path.chmod(mode)
    with pytest.raises(KeyFileError, match="chmod 600"):
        key_files.node_key(str(path))


def test_a_missing_key_names_the_command_that_makes_it(folder: Path) -> None:
    with pytest.raises(KeyFileError, match="tfprof keys add NODE"):
        key_files.node_key(str(folder / "collector.key"))
    with pytest.raises(KeyFileError, match="tfprof keys init"):
        key_files.collector_pair()


@pytest.mark.parametrize("kind", ["fifo", "link", "folder"])
def test_only_a_regular_file_is_read(folder: Path, kind: str) -> None:
    target = node_key_file(folder)
    path = folder / "other.key"
    {"fifo": lambda: os.mkfifo(path, 0o600), "link": lambda: path.symlink_to(target), "folder": path.mkdir}[kind]()
    with pytest.raises(KeyFileError):
        key_files.node_key(str(path))


@pytest.mark.parametrize("text", ["", "[]", "{}", "{", '{"node": "n", "public": "x"}', '{"node": "a b"}', "[" * 99_999])
def test_other_content_is_refused(folder: Path, text: str) -> None:
    path = node_key_file(folder)
    path.write_text(text)
    with pytest.raises(KeyFileError):
        key_files.node_key(str(path))


def test_an_existing_key_is_not_overwritten(folder: Path) -> None:
    path = node_key_file(folder)
    text = path.read_text()
    with pytest.raises(KeyFileError, match="exists already"):
        node_key_file(folder)
    assert path.read_text() == text


@pytest.mark.parametrize("name", ["", "a b", "../x", "-x", "x/y", "x\n", "x" * 65])
def test_a_node_has_a_host_name(name: str) -> None:
    with pytest.raises(UsageError):
        key_files.node_name(name)
