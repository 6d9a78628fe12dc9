"""Which requests of browsers are taken, and which are refused."""

from __future__ import annotations

import asyncio

import pytest

from pulsar_py.admin.foreign_pages import refusal_of
from pulsar_py.standalone import Broker

ALLOWED = {"https://tools.example"}


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"host": "localhost:8080"},
        {"host": "localhost:8080", "origin": "http://localhost:8080"},
        {"host": "LocalHost:8080", "origin": "http://localhost:8080"},
        {"host": "localhost:8080", "sec-fetch-site": "same-origin"},
        {"host": "localhost:8080", "sec-fetch-site": "none"},
        {"host": "h", "origin": "https://tools.example", "sec-fetch-site": "cross-site"},
    ],
)
def test_taken(headers: dict[str, str]) -> None:
    assert refusal_of(headers, ALLOWED) is None


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "localhost:8080", "origin": "http://evil.example"},
        {"host": "localhost:8080", "origin": "http://localhost:3000"},
        {"host": "localhost:8080", "origin": "null"},
        {"origin": "http://evil.example"},
        {"host": "localhost:8080", "origin": "https://tools.example.evil.example"},
        {"host": "localhost:8080", "sec-fetch-site": "cross-site"},
        {
            "host": "localhost:8080",
            "origin": "http://localhost:8080",
            "sec-fetch-site": "cross-site",
        },
    ],
)
def test_refused(headers: dict[str, str]) -> None:
    reason = refusal_of(headers, ALLOWED)
    assert reason is not None
    assert "webServiceAllowedOrigins" in reason


def test_an_empty_entry_of_the_list_lets_nobody_in() -> None:
    assert refusal_of({"host": "h", "sec-fetch-site": "cross-site"}, {""}) is not None


async def answer(port: int, *headers: str) -> bytes:
    """The status line of a call that changes something, and needs no body."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = ["PUT /admin/v2/persistent/public/default/of-a-page HTTP/1.1", f"Host: localhost:{port}"]
    writer.write("\r\n".join([*head, *headers, "Content-Length: 0", "", ""]).encode())
    line = await reader.readline()
    writer.close()
    return line


@pytest.mark.setting("webServiceAllowedOrigins")
async def test_a_page_of_another_site_changes_nothing() -> None:
    config = {"webServiceAllowedOrigins": "https://Tools.example/"}
    async with Broker(config=config) as broker:
        port = int(broker.web_service_url.rpartition(":")[2])
        assert b" 403 " in await answer(port, "Origin: http://evil.example")
        assert b" 403 " in await answer(port, "Sec-Fetch-Site: cross-site")
        assert not broker.service.topics.topics
        assert b" 204 " in await answer(port, "Origin: https://tools.example")
        assert b" 409 " in await answer(port, f"Origin: http://localhost:{port}")
