"""Which orders of a collector an agent refuses altogether."""

from pathlib import Path

import pytest
from tfprof.agent.daemon.remote_orders import refusal, request_refusal
from tfprof.formats import requests
from tfprof.formats.addresses import local_endpoint, remote_endpoint
from tfprof.formats.orders import Giver
from tfprof.formats.requests import Request

LOCAL, REMOTE = local_endpoint("/run/t"), remote_endpoint("tcp://127.0.0.1:7199")


@pytest.fixture
def settings_file(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("TFPROF_REMOTE_ORDERS", raising=False)
    monkeypatch.delenv("TFPROF_REMOTE_ATTACH", raising=False)
    (tmp_path / "tfprof").mkdir()
    return tmp_path / "tfprof/config.toml"


@pytest.mark.parametrize(
    ("endpoint", "key", "setting", "slug"),
    [
        (LOCAL, "none", "false", None),
        (REMOTE, "", "true", None),
        (REMOTE, "/etc/tfprof/node.key", "true", None),
        (REMOTE, "", "false", "remote-orders"),
        (REMOTE, "none", "true", "order-unverified"),
        (REMOTE, "none", "false", "remote-orders"),
        (REMOTE, "", "3", "settings-file"),
    ],
)
def test_orders_of_another_host_need_a_key_and_the_setting(settings_file, endpoint, key, setting, slug) -> None:
    settings_file.write_text(f"remote-orders = {setting}\n")
    error = refusal(endpoint, key, "node1")
    assert (error and error.slug) == slug
    assert error is None or "node1" in error.args[0] or slug == "settings-file"


def test_the_setting_is_read_for_each_order(settings_file) -> None:
    assert refusal(REMOTE, "", "node1") is None
    settings_file.write_text("remote-orders = false\n")
    error = refusal(REMOTE, "", "node1")
    assert error is not None
    assert error.slug == "remote-orders"
    settings_file.unlink()
    assert refusal(REMOTE, "", "node1") is None


def test_the_environment_overrides_the_file(settings_file, monkeypatch) -> None:
    settings_file.write_text("remote-orders = true\n")
    monkeypatch.setenv("TFPROF_REMOTE_ORDERS", "no")
    error = refusal(REMOTE, "", "node1")
    assert error is not None
    assert error.slug == "remote-orders"


@pytest.mark.parametrize(
    ("endpoint", "command", "settings", "slug"),
    [
        (REMOTE, requests.PS, "", None),
        (REMOTE, requests.ATTACH, "", "remote-attach"),
        (REMOTE, requests.ATTACH, "remote-attach = false\n", "remote-attach"),
        (REMOTE, requests.ATTACH, "remote-attach = true\n", None),
        (REMOTE, requests.ATTACH, "remote-attach = true\nremote-orders = false\n", "remote-orders"),
        (REMOTE, requests.DOCTOR, "remote-attach = true\nremote-orders = false\n", "remote-orders"),
        (LOCAL, requests.ATTACH, "", None),
    ],
)
def test_attaching_needs_a_setting_of_its_own(settings_file, endpoint, command, settings, slug) -> None:
    settings_file.write_text(settings)
    error = request_refusal(endpoint, "", "node1", Request(command, Giver("ada", "head", 1), 7))
    assert (error and error.slug) == slug
