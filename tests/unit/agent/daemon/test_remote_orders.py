"""Which orders of a collector an agent refuses altogether."""

import pytest
from tfprof.agent.daemon.remote_orders import refusal
from tfprof.formats.addresses import local_endpoint, remote_endpoint

LOCAL, REMOTE = local_endpoint("/run/t"), remote_endpoint("tcp://127.0.0.1:7199")


@pytest.mark.parametrize(
    ("endpoint", "key", "is_allowed", "slug"),
    [
        (LOCAL, "none", False, None),
        (REMOTE, "", True, None),
        (REMOTE, "/etc/tfprof/node.key", True, None),
        (REMOTE, "", False, "remote-orders"),
        (REMOTE, "none", True, "order-unverified"),
        (REMOTE, "none", False, "remote-orders"),
    ],
)
def test_orders_of_another_host_need_a_key_and_the_setting(endpoint, key, is_allowed, slug) -> None:
    error = refusal(endpoint, key, "node1", is_allowed=is_allowed)
    assert (error and error.slug) == slug
    assert error is None or "node1" in error.args[0]
