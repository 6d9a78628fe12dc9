"""What is sent, and what answers mean."""

from __future__ import annotations

import socket

import pytest

from pulsar_py.admin_client.requests import AdminSettings, Requests, reason_of
from pulsar_py.common.errors import ConfigurationError, ConnectError
from pulsar_py.testing.broker_thread import BrokerThread


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def test_hosts_of_a_url() -> None:
    settings = AdminSettings(url="http://a:8080,b:8081/")
    assert settings.hosts() == [("http", "a:8080"), ("http", "b:8081")]


@pytest.mark.parametrize("url", ["a:8080", "pulsar://a:6650", "http://", ""])
def test_a_url_that_is_none(url: str) -> None:
    with pytest.raises(ConfigurationError, match="expected http"):
        Requests(AdminSettings(url=url))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"token": "abc"}, "Bearer abc"),
        ({"user": "me:secret"}, "Basic bWU6c2VjcmV0"),
        ({}, None),
    ],
)
def test_credentials(given: dict[str, str], expected: str | None) -> None:
    headers = AdminSettings(url="http://a", **given).all_headers()  # type: ignore[arg-type]
    assert headers.get("Authorization") == expected


def test_the_next_host_is_tried(pulsar_broker: BrokerThread) -> None:
    live = pulsar_broker.web_service_url.removeprefix("http://")
    requests = Requests(AdminSettings(url=f"http://127.0.0.1:{free_port()},{live}"))
    assert "public" in requests.send("GET", "/admin/v2/tenants")
    requests.close()


def test_nobody_answers() -> None:
    port = free_port()
    with pytest.raises(ConnectError, match=str(port)):
        Requests(AdminSettings(url=f"http://127.0.0.1:{port}")).send("GET", "/")


@pytest.mark.parametrize(
    ("answer", "reason"),
    [(b'{"reason": "gone"}', "gone"), (b"plain", "plain"), (b"[1]", "[1]"), (b"", "")],
)
def test_reasons(answer: bytes, reason: str) -> None:
    assert reason_of(answer) == reason


def test_secrets_are_not_shown() -> None:
    settings = AdminSettings(url="http://a", token="abcd", user="me:efgh", headers={"x": "ijkl"})
    assert not any(secret in repr(settings) for secret in ("abcd", "efgh", "ijkl"))
