from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from pulsar_py.common.errors import ConfigurationError, ConnectError
from pulsar_py.server.load.broker_report import BrokerReport
from pulsar_py.server.load.other_brokers import (
    FORWARDED,
    CallSettings,
    OtherBrokerError,
    OtherBrokers,
)
from pulsar_py.testing.network import run_simulated

Answer = tuple[int, str, str]


@asynccontextmanager
async def answering(*answers: Answer) -> AsyncIterator[list[str]]:
    """A broker at one:8080 that answers one request after the other, and what was asked."""
    asked: list[str] = []
    waiting = list(answers)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append((await reader.readuntil(b"\r\n\r\n")).decode())
        status, headers, body = waiting.pop(0)
        writer.write(
            f"HTTP/1.1 {status} X\r\n{headers}Content-Length: {len(body)}\r\n"
            f"Connection: close\r\n\r\n{body}".encode()
        )
        writer.close()

    server = await asyncio.start_server(serve, "one", 8080)
    yield asked
    server.close()


def report(url: str | None = "http://one:8080", tls: str | None = None) -> BrokerReport:
    return BrokerReport(broker_id="one:8080", start_millis=1, web_url=url, web_url_tls=tls)


def test_a_call_says_that_a_broker_makes_it() -> None:
    async def run() -> None:
        async with answering((200, "", '{"a":1}')) as asked:
            others = OtherBrokers(CallSettings())
            answer = await others.call(report(), "GET", "/admin/v2/x?y=1")
            assert answer.json() == {"a": 1}
            assert asked[0].startswith("GET /admin/v2/x?y=1 HTTP/1.1")
            assert f"{FORWARDED}: true".lower() in asked[0].lower()
            assert others.calls_count == 1
            await others.close()

    run_simulated(run())


def test_refusals_name_the_broker_and_its_reason() -> None:
    async def run() -> None:
        answers = (
            (412, "", '{"reason":"no such bundle"}'),
            (307, "Location: http://two:8080/x\r\n", ""),
        )
        async with answering(*answers):
            others = OtherBrokers(CallSettings())
            with pytest.raises(OtherBrokerError, match="http://one:8080/x: 412 no such bundle"):
                await others.call(report(), "PUT", "/x")
            with pytest.raises(OtherBrokerError, match="redirect to http://two:8080/x"):
                await others.call(report(), "PUT", "/x")
            with pytest.raises(ConnectError):
                await others.call_url("http://nobody:8080", "PUT", "/x")
            with pytest.raises(OtherBrokerError, match="names no address"):
                await others.call(report(None), "PUT", "/x")
            await others.close()

    run_simulated(run())


@pytest.mark.parametrize(
    ("plugin", "parameters", "header"),
    [
        ("org.apache.pulsar.client.impl.auth.AuthenticationToken", "token:abc", "Bearer abc"),
        ("AuthenticationToken", "abc", "Bearer abc"),
        (
            "AuthenticationBasic",
            '{"userId":"u","password":"p"}',
            f"Basic {base64.b64encode(b'u:p').decode()}",
        ),
    ],
)
def test_it_proves_its_role(plugin: str, parameters: str, header: str) -> None:
    async def run() -> None:
        async with answering((204, "", "")) as asked:
            others = OtherBrokers(CallSettings(plugin=plugin, parameters=parameters))
            await others.call(report(), "GET", "/x")
            assert f"Authorization: {header}" in asked[0]
            await others.close()

    run_simulated(run())


async def test_a_token_is_read_from_its_file_for_each_call(tmp_path: Path) -> None:
    file = tmp_path / "my token"
    others = OtherBrokers(
        CallSettings(
            plugin="AuthenticationToken", parameters=f"file://{str(file).replace(' ', '%20')}"
        )
    )
    with pytest.raises(ConfigurationError, match="my token"):
        await others.call(report(), "GET", "/x")


@pytest.mark.parametrize(
    ("plugin", "parameters", "message"),
    [
        ("AuthenticationBasic", "u:p", "expected"),
        ("AuthenticationSasl", "", "is not offered"),
    ],
)
async def test_what_can_not_be_proved_is_an_error(
    plugin: str, parameters: str, message: str
) -> None:
    others = OtherBrokers(CallSettings(plugin=plugin, parameters=parameters))
    with pytest.raises(ConfigurationError, match=message):
        await others.call(report(), "GET", "/x")


def test_the_address_with_tls_is_taken_if_so_set_or_if_there_is_no_other() -> None:
    both = report(tls="https://one:8443")
    assert OtherBrokers(CallSettings()).url_of(both) == "http://one:8080"
    assert OtherBrokers(CallSettings(uses_tls=True)).url_of(both) == "https://one:8443"
    assert OtherBrokers(CallSettings()).url_of(report(None, "https://one:8443")) == (
        "https://one:8443"
    )
    assert OtherBrokers(CallSettings(uses_tls=True)).url_of(report()) == "http://one:8080"
