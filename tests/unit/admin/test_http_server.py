"""HTTP/1.1 as clients of all kinds send it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

import pytest

from pulsar_py.admin.http_connection import PART_BYTES, HttpConnection
from pulsar_py.admin.http_messages import NO_CONTENT, AnswerEndedError, Response, page_response
from pulsar_py.admin.http_server import HttpLimits, HttpServer
from pulsar_py.common.loops.clock import SystemClock
from pulsar_py.server.security.peer import Peer

LARGE = bytes(range(256)) * 100_000
"""More than a peer's socket takes at once, and not a whole number of parts."""


ENDS: Mapping[str, Exception | None] = {
    "/stream": None,
    "/broken": ValueError("broken on purpose"),
    "/ended": AnswerEndedError("the right is gone"),
}


ENDED: list[str] = []
"""Targets of answers that have ended, in order."""


async def stream(error: Exception | None) -> AsyncGenerator[bytes, None]:
    for number in range(3):
        yield f"part {number}\n".encode()
        await asyncio.sleep(0)
    if error is not None:
        raise error


async def echo(
    method: str, target: str, headers: Mapping[str, str], body: bytes, peer: Peer
) -> Response:
    if target == "/who":
        return Response(200, peer.remote_address.encode(), "text/plain")
    if target == "/large" or target.startswith("/held"):
        answer = b"small" if target in {"/held", "/held/head"} else LARGE
        return Response(200, answer, "text/plain", on_ended=lambda: ENDED.append(target))
    if target in ENDS:
        return Response(200, content_type="text/plain", stream=stream(ENDS[target]))
    if target == "/nothing":
        return NO_CONTENT
    if target == "/page":
        return page_response(404)
    text = f"{method} {target} {headers.get('x-test', '-')} ".encode()
    return Response(200, text + body, "text/plain", (("X-Served", "yes"),))


@asynccontextmanager
async def serving(limits: HttpLimits | None = None) -> AsyncIterator[HttpServer]:
    server = HttpServer(echo, clock=SystemClock(), limits=limits)
    await server.bind("127.0.0.1", 0)
    await server.serve()
    try:
        yield server
    finally:
        await server.close()


@asynccontextmanager
async def connected(
    server: HttpServer, own_host: str = "127.0.0.1"
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    own = (own_host, 0)
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port, local_addr=own)
    try:
        yield reader, writer
    finally:
        writer.close()


async def read_response(reader: asyncio.StreamReader) -> tuple[int, dict[str, str], bytes]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in head[1:] if line)
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return int(head[0].split(" ")[1]), headers, body


async def rest_of(reader: asyncio.StreamReader) -> bytes:
    """Everything until the server ends the connection, by a reset or in order."""
    try:
        return await reader.read()
    except ConnectionResetError:
        return b""


class Shouting:
    """Another protocol, which answers in capitals."""

    def __init__(self) -> None:
        self.is_lost = asyncio.Event()
        self.transport: asyncio.Transport | None = None

    def begin(self, transport: asyncio.Transport) -> None:
        self.transport = transport
        transport.write(b"HTTP/1.1 101 Switching Protocols\r\n\r\n")

    def data_received(self, data: bytes) -> None:
        assert self.transport is not None
        self.transport.write(data.upper())

    def connection_lost(self) -> None:
        self.is_lost.set()

    def pause_writing(self) -> None:
        """Nothing is written unasked."""

    def resume_writing(self) -> None:
        """As above."""


async def test_who_holds_something_for_an_answer_hears_of_its_end() -> None:
    ENDED.clear()
    async with serving() as server, connected(server) as (reader, writer):
        writer.write(b"GET /held/large HTTP/1.1\r\nHost: a\r\n\r\n")
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200")
        async with connected(server) as (other_reader, other_writer):
            other_writer.write(b"HEAD /held/head HTTP/1.1\r\nHost: a\r\n\r\n")
            await other_reader.readuntil(b"\r\n\r\n")
            other_writer.write(b"GET /held HTTP/1.1\r\nHost: a\r\n\r\n")
            assert (await read_response(other_reader))[2] == b"small"
        assert ENDED == ["/held/head", "/held"], "the large one is not taken yet"
        assert await reader.readexactly(len(LARGE)) == LARGE
        writer.write(b"GET /x HTTP/1.1\r\nHost: a\r\n\r\n")
        await read_response(reader)
        assert ENDED == ["/held/head", "/held", "/held/large"]


async def test_an_answer_whose_peer_goes_has_ended() -> None:
    ENDED.clear()
    async with serving() as server:
        async with connected(server) as (reader, writer):
            writer.write(b"GET /held/large HTTP/1.1\r\nHost: a\r\n\r\n")
            await reader.readuntil(b"\r\n\r\n")
            assert ENDED == []
            writer.transport.abort()
        async with asyncio.timeout(10):
            while not ENDED:  # noqa: ASYNC110 - there is no event
                await asyncio.sleep(0)
    assert ENDED == ["/held/large"]


async def test_another_protocol_takes_over_with_what_came_behind_its_request() -> None:
    successor = Shouting()

    async def upgrade(
        method: str, target: str, headers: Sequence[tuple[bytes, bytes]], peer: Peer
    ) -> Response | Shouting:
        return successor if (b"upgrade", b"shouting") in headers else page_response(405)

    server = HttpServer(echo, clock=SystemClock(), upgrades=upgrade)
    await server.bind("127.0.0.1", 0)
    await server.serve()
    head = b"Host: x\r\nConnection: Upgrade\r\nUpgrade: shouting\r\n\r\n"
    async with connected(server) as (reader, writer):
        writer.write(b"GET /wsx HTTP/1.1\r\n" + head)
        assert (await read_response(reader))[0] == 200
        writer.write(b"GET /ws HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (await read_response(reader))[0] == 405
        writer.write(b"GET /ws?a HTTP/1.1\r\n" + head + b"early ")
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"late")
        assert await reader.readexactly(10) == b"EARLY LATE"
        assert server.connections_count == 1
        await server.close()
        assert await rest_of(reader) == b""
    await asyncio.wait_for(successor.is_lost.wait(), 10)


async def test_a_connection_serves_one_request_after_the_other() -> None:
    async with serving() as server, connected(server) as (reader, writer):
        for number in range(3):
            writer.write(f"GET /{number} HTTP/1.1\r\nHost: a\r\nX-Test: t\r\n\r\n".encode())
            status, headers, body = await read_response(reader)
            assert (status, body) == (200, f"GET /{number} t ".encode())
            assert headers["x-served"] == "yes"
        assert server.connections_count == 1


async def test_the_application_is_told_who_asks() -> None:
    async with serving() as server, connected(server) as (reader, writer):
        writer.write(b"GET /who HTTP/1.1\r\nHost: a\r\n\r\n")
        host, port = writer.get_extra_info("sockname")
        assert (await read_response(reader))[2] == f"/{host}:{port}".encode()


async def test_pages_run_nothing_and_nobody_frames_them() -> None:
    async with serving() as server, connected(server) as (reader, writer):
        writer.write(b"GET /page HTTP/1.1\r\nHost: a\r\n\r\n")
        _, headers, _ = await read_response(reader)
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["x-frame-options"] == "deny"
        writer.write(b"GET /data HTTP/1.1\r\nHost: a\r\n\r\n")
        _, headers, _ = await read_response(reader)
        assert headers["x-content-type-options"] == "nosniff"
        assert "content-security-policy" not in headers
        writer.write(b"not HTTP\r\n\r\n")
        assert b"Content-Security-Policy" in await rest_of(reader)


async def test_pipelined_requests_are_answered_in_order() -> None:
    async with serving() as server, connected(server) as (reader, writer):
        writer.write(b"GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n")
        assert (await read_response(reader))[2] == b"GET /1 - "
        assert (await read_response(reader))[2] == b"GET /2 - "


async def test_a_request_may_come_byte_by_byte() -> None:
    async with serving() as server, connected(server) as (reader, writer):
        for byte in b"PUT /x HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nab":
            writer.write(bytes([byte]))
            await writer.drain()
        assert (await read_response(reader))[2] == b"PUT /x - ab"


async def test_a_chunked_body_is_put_together() -> None:
    async with serving() as server, connected(server) as (reader, writer):
        writer.write(b"POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
        writer.write(b"2\r\nab\r\n1\r\nc\r\n0\r\n\r\n")
        assert (await read_response(reader))[2] == b"POST /x - abc"


async def test_a_client_that_waits_is_told_to_continue() -> None:
    async with serving() as server, connected(server) as (reader, writer):
        writer.write(
            b"PUT /x HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nExpect: 100-continue\r\n\r\n"
        )
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 100")
        writer.write(b"z")
        assert (await read_response(reader))[2] == b"PUT /x - z"


async def test_no_content_has_no_length() -> None:
    async with serving() as server, connected(server) as (reader, writer):
        writer.write(b"GET /nothing HTTP/1.1\r\nHost: a\r\n\r\n")
        status, headers, _ = await read_response(reader)
        assert status == 204
        assert "content-length" not in headers


async def test_head_gives_the_length_and_no_body() -> None:
    async with serving() as server, connected(server) as (reader, writer):
        writer.write(b"HEAD /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        answer = await reader.read()
        assert b"content-length: 10" in answer.lower()
        assert answer.endswith(b"\r\n\r\n")


async def test_connection_close_is_obeyed() -> None:
    async with serving() as server, connected(server) as (reader, writer):
        writer.write(b"GET /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        assert (await reader.read()).endswith(b"GET /x - ")


CHUNKS = b"7\r\npart 0\n\r\n7\r\npart 1\n\r\n7\r\npart 2\n\r\n"


async def test_a_stream_is_sent_in_chunks_and_the_connection_goes_on() -> None:
    async with serving() as server, connected(server) as (reader, writer):
        for _ in range(2):
            writer.write(b"GET /stream HTTP/1.1\r\nHost: a\r\n\r\n")
            _, headers, _ = await read_response(reader)
            assert headers["transfer-encoding"] == "chunked"
            assert await reader.readexactly(len(CHUNKS) + 5) == CHUNKS + b"0\r\n\r\n"
        writer.write(b"HEAD /stream HTTP/1.1\r\nHost: a\r\n\r\nGET /1 HTTP/1.1\r\nHost: a\r\n\r\n")
        await read_response(reader)
        assert (await read_response(reader))[2] == b"GET /1 - "


async def test_a_stream_that_fails_has_no_end(caplog: pytest.LogCaptureFixture) -> None:
    async with serving() as server, connected(server) as (reader, writer):
        writer.write(b"GET /broken HTTP/1.1\r\nHost: a\r\n\r\n")
        assert b"0\r\n\r\n" not in await rest_of(reader)
        assert "answer cut short" in caplog.text
    async with serving() as server, connected(server) as (reader, writer):
        writer.write(b"GET /stream HTTP/1.0\r\n\r\n")
        assert (await rest_of(reader)).endswith(b"\r\n\r\npart 0\npart 1\npart 2\n")


async def test_a_stream_whose_caller_lost_his_right_has_no_end(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with serving() as server, connected(server) as (reader, writer):
        writer.write(b"GET /ended HTTP/1.1\r\nHost: a\r\n\r\n")
        answer = await rest_of(reader)
    assert b"part 0" in answer
    assert b"0\r\n\r\n" not in answer
    levels = [each.levelname for each in caplog.records if each.message == "answer cut short"]
    assert levels in ([], ["INFO"])  # as the level has it


async def until_it_waits(connection: HttpConnection) -> None:
    for _ in range(100_000):
        if connection._writable is not None:
            return
        await asyncio.sleep(0)
    raise AssertionError("the peer took everything")


async def test_a_large_answer_waits_for_its_peer_and_comes_whole() -> None:
    async with serving() as server, connected(server) as (reader, writer):
        writer.write(b"GET /large HTTP/1.1\r\nhost: a\r\n\r\nGET /b HTTP/1.1\r\nhost: a\r\n\r\n")
        await reader.readuntil(b"\r\n\r\n")
        connection = next(iter(server._connections))
        await until_it_waits(connection)
        assert connection._transport is not None
        assert connection._transport.get_write_buffer_size() < 3 * PART_BYTES
        assert connection.deadline < float("inf")
        assert await reader.readexactly(len(LARGE)) == LARGE
        assert (await read_response(reader))[2] == b"GET /b - "


async def test_a_peer_that_leaves_in_the_middle_of_an_answer_is_forgotten() -> None:
    async with serving() as server, connected(server) as (reader, writer):
        writer.write(b"GET /large HTTP/1.1\r\nhost: a\r\n\r\n")
        await reader.readuntil(b"\r\n\r\n")
        connection = next(iter(server._connections))
        await until_it_waits(connection)
        writer.transport.abort()
        async with asyncio.timeout(10):
            await server._tasks.drain()
        assert server.connections_count == 0


async def test_a_half_closed_client_still_gets_its_answer() -> None:
    async with serving() as server, connected(server) as (reader, writer):
        writer.write(b"GET /x HTTP/1.1\r\nHost: a\r\n\r\n")
        writer.write_eof()
        assert (await reader.read()).endswith(b"GET /x - ")


async def test_what_is_no_http_is_refused() -> None:
    async with serving() as server, connected(server) as (reader, writer):
        writer.write(b"\x00\x00\x00\x10 this is no http\r\n\r\n")
        assert (await reader.read()).startswith(b"HTTP/1.1 400")


@pytest.mark.parametrize(
    "head",
    [
        b"GET /x HTTP/1.1\nHost: a\n\n",
        b"GET /x HTTP/1.1\r\nHost: a\nX: b\r\n\r\n",
        b"GET /x HTTP/1.1\r\nHost: a\r\nX: b\r\n c\r\n\r\n",
    ],
)
async def test_lines_that_a_proxy_may_read_otherwise_are_refused(head: bytes) -> None:
    plain = b"GET /x HTTP/1.1\r\nHost: a\r\n\r\n"
    async with serving() as server:
        async with connected(server) as (reader, writer):
            writer.write(plain + head + plain)  # behind another one, in the same segment
            answer = await reader.read()
            assert answer.count(b"HTTP/1.1 200") == 1
            assert answer.count(b"HTTP/1.1 400") == 1
        async with connected(server) as (reader, writer):
            writer.write(head)
            assert (await reader.read()).startswith(b"HTTP/1.1 400")


async def test_lines_of_a_body_are_no_lines_of_a_head() -> None:
    async with serving() as server, connected(server) as (reader, writer):
        head = b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\n"
        for _ in range(2):
            writer.write(head + b"\n\n a\n ")
            assert (await read_response(reader))[2] == b"POST /x - \n\n a\n "


async def test_nothing_is_read_behind_trailers() -> None:
    async with serving() as server, connected(server) as (reader, writer):
        head = b"POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
        hidden = b"GET /hidden HTTP/1.1\r\nHost: a\r\n\r\n"
        writer.write(head + b"1\r\nb\r\n0\r\nX: y\n\n" + hidden)
        answer = await rest_of(reader)
        assert answer.endswith(b"POST /x - b")


async def test_headers_are_bounded() -> None:
    async with (
        serving(HttpLimits(header_bytes=1000)) as server,
        connected(server) as (
            reader,
            writer,
        ),
    ):
        writer.write(b"GET /x HTTP/1.1\r\nHost: a\r\nX-Long: " + b"a" * 3000)
        assert (await reader.read()).startswith(b"HTTP/1.1 431")


async def test_a_refused_head_has_no_body(caplog: pytest.LogCaptureFixture) -> None:
    async with (
        serving(HttpLimits(header_bytes=1000)) as server,
        connected(server) as (reader, writer),
    ):
        writer.write(b"HEAD /x HTTP/1.1\r\nHost: a\r\nX-Long: " + b"a" * 3000 + b"\r\n\r\n")
        answer = await rest_of(reader)
        assert answer.startswith(b"HTTP/1.1 431")
        assert answer.endswith(b"\r\n\r\n")
    assert not caplog.records


async def test_bodies_are_bounded() -> None:
    async with serving(HttpLimits(body_bytes=10)) as server, connected(server) as (reader, writer):
        head = b"PUT /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
        writer.write(head + b"b\r\n" + b"a" * 11)
        assert (await reader.read()).startswith(b"HTTP/1.1 413")


async def test_a_body_that_says_it_is_too_large_is_not_waited_for() -> None:
    asked = b"POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n"
    limits = HttpLimits(body_bytes=10)
    async with serving(limits) as server, connected(server) as (reader, writer):
        writer.write(asked % 11)
        assert (await reader.read()).startswith(b"HTTP/1.1 413")
    limits = HttpLimits(body_bytes=10)
    async with serving(limits) as server, connected(server) as (reader, writer):
        writer.write(asked % 10)
        assert await reader.readline() == b"HTTP/1.1 100 \r\n"


async def send_body(
    server: HttpServer, writers: list[asyncio.StreamWriter], size: int, *, but: int = 0
) -> asyncio.StreamReader:
    """Send a body but for its last bytes, on a connection of its own."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writers.append(writer)
    head = f"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: {size}\r\n\r\n".encode()
    writer.write(head + bytes(size - but))
    await writer.drain()
    return reader


async def test_all_bodies_together_are_bounded_but_for_small_ones() -> None:
    """A body is memory before anybody has asked who sends it."""
    writers: list[asyncio.StreamWriter] = []
    async with serving(HttpLimits(all_bodies_bytes=400_000)) as server, asyncio.timeout(60):
        for _ in range(2):
            await send_body(server, writers, 200_000, but=1)
        while server.bodies_bytes < 2 * 199_999:  # noqa: ASYNC110 - nobody tells when it is
            await asyncio.sleep(0.001)
        assert b" 503 " in await rest_of(await send_body(server, writers, 100_000))
        status, _, body = await read_response(await send_body(server, writers, 60_000))
        assert (status, len(body)) == (200, 60_000 + len("POST / - "))
        assert server.bodies_bytes == 2 * 199_999
        for connection in list(server._connections):
            connection.drop()
        while server.bodies_bytes:  # noqa: ASYNC110 - nobody tells when it is
            await asyncio.sleep(0.001)
        status, _, body = await read_response(await send_body(server, writers, 300_000))
        assert (status, len(body)) == (200, 300_000 + len("POST / - "))
        assert server.bodies_bytes == 0
    for each in writers:
        each.close()


async def test_connections_are_bounded() -> None:
    async with (
        serving(HttpLimits(connections_count=1)) as server,
        connected(server) as (first_reader, first),
    ):
        first.write(b"GET /x HTTP/1.1\r\nHost: a\r\n\r\n")
        await read_response(first_reader)
        async with connected(server) as (reader, _):
            assert await rest_of(reader) == b""


async def test_connections_of_one_address_are_bounded() -> None:
    limits = HttpLimits(host_connections_count=2)
    async with serving(limits) as server, connected(server) as (kept, keeping):
        for _ in range(3):  # whoever left, or was refused, counts no more
            async with connected(server) as (reader, writer):
                writer.write(b"GET /x HTTP/1.1\r\nHost: a\r\n\r\n")
                await read_response(reader)
                async with connected(server) as (refused, _):
                    assert await rest_of(refused) == b""
                async with connected(server, "127.0.0.2") as (other, asking):
                    asking.write(b"GET /y HTTP/1.1\r\nHost: a\r\n\r\n")
                    assert (await read_response(other))[0] == 200
                async with asyncio.timeout(10):
                    while server.connections_count > 2:  # noqa: ASYNC110 - it has no event
                        await asyncio.sleep(0)
            async with asyncio.timeout(10):
                while server.connections_count > 1:  # noqa: ASYNC110 - likewise
                    await asyncio.sleep(0)
        keeping.write(b"GET /z HTTP/1.1\r\nHost: a\r\n\r\n")
        assert (await read_response(kept))[0] == 200
    async with asyncio.timeout(10):
        while server._per_host:  # noqa: ASYNC110 - likewise
            await asyncio.sleep(0)


class StandingClock(SystemClock):
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic_seconds(self) -> float:
        return self.now


async def test_a_peer_that_takes_too_long_is_dropped() -> None:
    clock = StandingClock()
    server = HttpServer(echo, clock=clock)
    await server.bind("127.0.0.1", 0)
    await server.serve()
    async with connected(server) as (reader, writer):
        writer.write(b"GET /slow HTTP/1.1\r\nHost:")
        async with asyncio.timeout(60):
            while not server.connections_count:  # noqa: ASYNC110 - it has no event to wait for
                await asyncio.sleep(0)
        server._sweep()
        assert server.connections_count == 1
        clock.now += 31.0
        server._sweep()
        assert await rest_of(reader) == b""
    await server.close()


async def test_closing_drops_what_is_open() -> None:
    async with serving() as server, connected(server) as (reader, writer):
        writer.write(b"GET /x HTTP/1.1\r\nHost: a\r\n\r\n")
        await read_response(reader)
        await server.close()
        assert await rest_of(reader) == b""


def test_a_connection_belongs_to_a_server() -> None:
    server = HttpServer(echo, clock=SystemClock())
    assert HttpConnection(server).deadline > 0


@pytest.mark.parametrize(
    "name",
    [
        "Authorization",
        "X-Original-Principal",
        "X-Pulsar-Auth-Method-Name",
        "Origin",
        "Sec-Fetch-Site",
    ],
)
async def test_who_says_twice_who_he_is_is_refused(name: str) -> None:
    async with serving() as server:
        for values, status in ((["a", "b"], 400), (["a", "a"], 400), (["a"], 200)):
            async with connected(server) as (reader, writer):
                lines = "".join(f"{name}: {value}\r\n" for value in values)
                writer.write(f"GET / HTTP/1.1\r\nHost: x\r\n{lines}\r\n".encode())
                assert (await read_response(reader))[0] == status


@pytest.mark.parametrize(
    ("version", "lengths"),
    [
        ("1.1", "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"),
        ("1.1", "Transfer-Encoding: chunked\r\nContent-Length: 0\r\n"),
        ("1.0", "Connection: keep-alive\r\nTransfer-Encoding: chunked\r\n"),
    ],
)
async def test_a_body_that_a_proxy_may_see_end_elsewhere_is_refused(
    version: str, lengths: str
) -> None:
    """What follows could be a request of somebody else's."""
    second = "GET /second HTTP/1.1\r\nHost: x\r\n\r\n"
    async with serving() as server, connected(server) as (reader, writer):
        head = f"POST / HTTP/{version}\r\nHost: x\r\n{lengths}\r\n"
        writer.write(f"{head}0\r\n\r\n{second}".encode())
        assert (await read_response(reader))[0] == 400
        assert await reader.read() == b""
