"""Which requests of browsers are taken, and which are refused."""

from __future__ import annotations

import asyncio

import pytest

from pulsar_py.admin.foreign_pages import PageRules
from pulsar_py.common.errors import ConfigurationError
from pulsar_py.standalone import Broker

RULES = PageRules.of(
    allowed_origins={"https://Tools.example:443/", ""}, bound_host="127.0.0.1", is_open=False
)
LISTED = {"origin": "https://tools.example", "host": "h"}


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"host": "localhost:8080"},
        {"host": "localhost:8080", "origin": "http://localhost:8080"},
        {"host": "LocalHost:8080", "origin": "http://localhost:8080"},
        {"host": "localhost:8080", "sec-fetch-site": "same-origin"},
        {"host": "localhost:8080", "sec-fetch-site": "none"},
        {**LISTED, "sec-fetch-site": "cross-site"},
    ],
)
def test_taken(headers: dict[str, str]) -> None:
    assert RULES.refusal_of(headers) is None


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "localhost:8080", "origin": "http://evil.example"},
        {"host": "localhost:8080", "origin": "http://localhost:3000"},
        {"host": "localhost:8080", "origin": "null"},
        {"origin": "http://evil.example"},
        {"host": "localhost:8080", "origin": "https://tools.example.evil.example"},
        {"host": "localhost:8080", "sec-fetch-site": "cross-site"},
        {"host": "localhost:8080", "sec-fetch-site": "same-site"},
        {"host": "localhost:8080", "sec-fetch-site": "something-new"},
        {
            "host": "localhost:8080",
            "origin": "http://localhost:8080",
            "sec-fetch-site": "cross-site",
        },
    ],
)
def test_refused(headers: dict[str, str]) -> None:
    reason = RULES.refusal_of(headers)
    assert reason is not None
    assert "webServiceAllowedOrigins" in reason


OWN = ["localhost:8080", "a.localhost", "127.0.0.1", "[::1]:8080", "192.0.2.1:80", "Me.Example:80"]
OWN += ["me.example.", "also.example"]
FOREIGN = [
    "",
    " ",
    "evil.example:8080",
    "localhost.evil.example",
    "2130706433",
    "localhost:1:2",
    "a b",
]


def open_rules(bound_host: str, *, is_open: bool = True) -> PageRules:
    return PageRules.of(
        allowed_hosts=["Also.example"],
        own_hosts=["me.example:6650", ""],
        bound_host=bound_host,
        is_open=is_open,
    )


@pytest.mark.parametrize("bound_host", ["127.0.0.1", "localhost", "0.0.0.0", "bound.example"])
@pytest.mark.parametrize("host", OWN)
def test_names_of_the_broker(bound_host: str, host: str) -> None:
    rules = open_rules(bound_host)
    assert rules.refusal_of({"host": host}) is None
    assert rules.refusal_of({"host": host, "origin": f"http://{host.lower()}"}) is None


def test_only_old_clients_and_no_browsers_come_without_a_host() -> None:
    assert open_rules("127.0.0.1").refusal_of({}) is None
    assert open_rules("127.0.0.1").refusal_of({"sec-fetch-site": "none"}) is not None


def test_the_bound_name_is_one_of_the_broker() -> None:
    named = {"host": "bound.example", "origin": "http://bound.example"}
    assert open_rules("bound.example").refusal_of(named) is None


@pytest.mark.parametrize("host", FOREIGN)
def test_names_that_are_not_the_brokers(host: str) -> None:
    of_a_page = {"host": host, "origin": f"http://{host}", "sec-fetch-site": "same-origin"}
    for bound_host in ("127.0.0.1", "0.0.0.0"):
        reason = open_rules(bound_host).refusal_of(of_a_page)
        assert reason is not None
        assert "webServiceAllowedHosts" in reason
        assert open_rules(bound_host, is_open=False).refusal_of(of_a_page) is None
    assert open_rules("127.0.0.1").refusal_of({"host": host}) is not None
    assert open_rules("0.0.0.0").refusal_of({"host": host}) is None


@pytest.mark.parametrize(
    "entry", ["tools.example", "*", "null", "https://", "https://a/b", "ftp://a", "http://a b"]
)
def test_an_entry_that_is_no_origin_is_refused(entry: str) -> None:
    with pytest.raises(ConfigurationError, match="webServiceAllowedOrigins"):
        Broker(config={"webServiceAllowedOrigins": entry})


@pytest.mark.parametrize("entry", ["http://a", "a:80", "*", "a/b"])
def test_an_entry_that_is_no_host_is_refused(entry: str) -> None:
    with pytest.raises(ConfigurationError, match="webServiceAllowedHosts"):
        Broker(config={"webServiceAllowedHosts": entry})


def test_a_preflight_of_a_listed_origin_is_answered() -> None:
    asked = {**LISTED, "access-control-request-method": "PUT"}
    answer = RULES.preflight("OPTIONS", {**asked, "access-control-request-headers": "content-type"})
    assert answer is not None
    headers = dict(answer.headers)
    assert headers["Access-Control-Allow-Origin"] == "https://tools.example"
    assert "PUT" in headers["Access-Control-Allow-Methods"]
    assert headers["Access-Control-Allow-Headers"] == "content-type"


def test_nobody_else_gets_headers_of_cors() -> None:
    of_its_own = {"origin": "http://h", "host": "h", "access-control-request-method": "PUT"}
    assert RULES.preflight("OPTIONS", of_its_own) is None
    assert RULES.preflight("OPTIONS", LISTED) is None
    assert RULES.permission(of_its_own) == ()
    assert PageRules().permission(LISTED) == ()


async def answer(port: int, *headers: str, host: str = "localhost", method: str = "PUT") -> bytes:
    """The head of an answer to a call that changes something, and needs no body."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    path = "/admin/v2/persistent/public/default/of-a-page"
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host}:{port}", *headers, "Content-Length: 0"]
    writer.write("\r\n".join([*lines, "", ""]).encode())
    head = await reader.readuntil(b"\r\n\r\n")
    writer.close()
    return head


@pytest.mark.setting("webServiceAllowedOrigins", "webServiceAllowedHosts")
async def test_a_page_of_another_site_changes_nothing() -> None:
    config = {
        "webServiceAllowedOrigins": "https://Tools.example/",
        "webServiceAllowedHosts": "Also.example",
        "advertisedListeners": "in:http://me.example:1,in:pulsar://me.example:2",
    }
    async with Broker(config=config) as broker:
        port = int(broker.web_service_url.rpartition(":")[2])
        assert b" 403 " in await answer(port, "Origin: http://evil.example")
        assert b" 403 " in await answer(port, "Sec-Fetch-Site: cross-site")
        assert b" 403 " in await answer(port, host="evil.example")
        preflight = await answer(
            port,
            "Origin: http://evil.example",
            "Access-Control-Request-Method: PUT",
            method="OPTIONS",
        )
        assert b" 403 " in preflight
        assert b"access-control" not in preflight.lower()
        assert not broker.service.topics.topics
        allowed = await answer(port, "Origin: https://tools.example")
        assert b" 204 " in allowed
        assert b"Access-Control-Allow-Origin: https://tools.example\r\n" in allowed
        own = await answer(port, f"Origin: http://localhost:{port}")
        assert b" 409 " in own
        assert b"access-control" not in own.lower()
        assert b" 409 " in await answer(port, host="also.example")
        assert b" 409 " in await answer(port, host="me.example")


@pytest.mark.parametrize(
    ("target", "host", "status"),
    [("http://localhost:80", "evil.example", 200), ("http://evil.example", "localhost", 403)],
)
async def test_the_host_in_a_target_is_the_one_that_counts(
    target: str, host: str, status: int
) -> None:
    async with Broker() as broker:
        port = int(broker.web_service_url.rpartition(":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        lines = [f"GET {target}/admin/v2/clusters HTTP/1.1", f"Host: {host}", "Connection: close"]
        writer.write("\r\n".join([*lines, "", ""]).encode())
        head = await reader.readuntil(b"\r\n\r\n")
        writer.close()
    assert head.startswith(b"HTTP/1.1 %d" % status)
