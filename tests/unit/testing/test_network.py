"""The network in memory keeps the promises of asyncio's own: most tests run on both."""

from __future__ import annotations

import asyncio
import random

import pytest

from pulsar_py.standalone import Broker
from pulsar_py.testing.clock import VirtualClock
from pulsar_py.testing.network import WINDOW_BYTES, SimulatedLoop, run_simulated


def run_real(work):
    with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
        return runner.run(asyncio.wait_for(work, 60))


both = pytest.mark.parametrize("run", [run_simulated, run_real], ids=["memory", "sockets"])


class Recorder(asyncio.Protocol):
    """Writes down what it is told."""

    def __init__(self, *, keeps_open: bool = False) -> None:
        self.events: list[str] = []
        self.data = bytearray()
        self.transport: asyncio.Transport | None = None
        self.changed = asyncio.Event()
        self.keeps_open = keeps_open
        self.error: BaseException | None = None

    def note(self, event: str) -> None:
        self.events.append(event)
        self.changed.set()

    def connection_made(self, transport) -> None:
        self.transport = transport
        self.note("made")

    def data_received(self, data: bytes) -> None:
        self.data += data
        self.changed.set()

    def eof_received(self) -> bool:
        self.note("eof")
        return self.keeps_open

    def connection_lost(self, exc) -> None:
        self.error = exc
        self.note("lost")

    def pause_writing(self) -> None:
        self.note("pause")

    def resume_writing(self) -> None:
        self.note("resume")

    async def until(self, holds) -> None:
        while not holds():
            self.changed.clear()
            await self.changed.wait()

    async def seen(self, event: str) -> None:
        await self.until(lambda: event in self.events)


async def connected(*, keeps_open: bool = False) -> tuple[Recorder, Recorder]:
    """A client's and a server's end."""
    loop = asyncio.get_running_loop()
    far = Recorder(keeps_open=keeps_open)
    server = await loop.create_server(lambda: far, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    _, near = await loop.create_connection(
        lambda: Recorder(keeps_open=keeps_open), "localhost", port
    )
    await far.seen("made")
    server.close()
    return near, far


@both
def test_bytes_arrive_in_order(run) -> None:
    async def main() -> None:
        near, far = await connected()
        for number in range(1000):
            near.transport.write(b"%d," % number)
        near.transport.writelines([b"a", bytearray(b"b"), memoryview(b"c")])
        expected = b"".join(b"%d," % number for number in range(1000)) + b"abc"
        await far.until(lambda: len(far.data) == len(expected))
        assert far.data == expected
        near.transport.abort()
        far.transport.abort()

    run(main())


@both
def test_closing_sends_what_is_buffered_first(run) -> None:
    async def main() -> None:
        near, far = await connected()
        near.transport.write(b"x" * 3_000_000)
        near.transport.close()
        near.transport.write(b"too late")
        await far.seen("lost")
        assert len(far.data) == 3_000_000
        assert far.events == ["made", "eof", "lost"]
        assert far.error is None
        await near.seen("lost")
        assert near.error is None

    run(main())


@both
def test_a_reader_that_pauses_stops_the_writer(run) -> None:
    async def main() -> None:
        near, far = await connected()
        far.transport.pause_reading()
        sent = 0
        while "pause" not in near.events:
            near.transport.write(b"x" * 65_536)
            sent += 65_536
        assert near.transport.get_write_buffer_size() > 0
        assert "resume" not in near.events
        far.transport.resume_reading()
        await near.seen("resume")
        await far.until(lambda: len(far.data) == sent)
        near.transport.abort()
        far.transport.abort()

    run(main())


@both
def test_one_direction_may_end_before_the_other(run) -> None:
    async def main() -> None:
        near, far = await connected(keeps_open=True)
        near.transport.write(b"question")
        near.transport.write_eof()
        await far.seen("eof")
        far.transport.write(b"answer")
        far.transport.close()
        await near.seen("eof")
        assert near.data == b"answer"
        near.transport.close()
        await near.seen("lost")

    run(main())


@both
def test_an_abort_loses_the_connection_on_both_sides(run) -> None:
    async def main() -> None:
        near, far = await connected()
        near.transport.abort()
        assert near.transport.is_closing()
        await near.seen("lost")
        await far.seen("lost")

    run(main())


@both
def test_nobody_listening_is_a_refusal(run) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(Recorder, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        server.close()
        with pytest.raises(ConnectionRefusedError):
            await loop.create_connection(Recorder, "127.0.0.1", port)

    run(main())


@both
def test_an_address_that_is_taken_is_refused(run) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(Recorder, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(OSError, match="attempting to bind"):
            await loop.create_server(Recorder, "127.0.0.1", port)
        server.close()

    run(main())


@both
def test_a_server_that_does_not_serve_yet_refuses(run) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(Recorder, "127.0.0.1", 0, start_serving=False)
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(ConnectionRefusedError):
            await loop.create_connection(Recorder, "127.0.0.1", port)
        await server.start_serving()
        transport, _ = await loop.create_connection(Recorder, "127.0.0.1", port)
        transport.abort()
        server.close()

    run(main())


@both
def test_what_a_protocol_raises_ends_its_connection(run) -> None:
    async def main() -> None:
        reported = []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: reported.append(context["exception"]))
        near, far = await connected()

        def fail(data: bytes) -> None:
            raise ValueError(data)

        far.data_received = fail
        near.transport.write(b"boom")
        await far.seen("lost")
        await near.seen("lost")
        assert [type(error) for error in reported] == [ValueError]

    run(main())


@both
def test_streams_work(run) -> None:
    async def main() -> None:
        async def serve(reader, writer) -> None:
            writer.write((await reader.read()).upper())
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(b"loud")
        writer.write_eof()
        assert await reader.read() == b"LOUD"
        writer.close()
        await writer.wait_closed()
        server.close()
        await server.wait_closed()

    run(main())


@both
def test_protocols_with_buffers_of_their_own_are_fed(run) -> None:
    class Buffered(asyncio.BufferedProtocol):
        def __init__(self) -> None:
            self.buffer = bytearray(3)
            self.data = bytearray()

        def get_buffer(self, sizehint: int):
            return self.buffer

        def buffer_updated(self, nbytes: int) -> None:
            self.data += self.buffer[:nbytes]
            if len(self.data) == 10:
                done.set()

    done: asyncio.Event

    async def main() -> None:
        nonlocal done
        done = asyncio.Event()
        near, far = await connected()
        buffered = Buffered()
        far.transport.set_protocol(buffered)
        near.transport.write(b"0123456789")
        await done.wait()
        assert buffered.data == b"0123456789"
        near.transport.abort()
        far.transport.abort()

    run(main())


# --- what only the network in memory has ---------------------------------------------------


def test_latency_passes_in_virtual_time() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        near, far = await connected()
        begun = loop.time()
        near.transport.write(b"x")
        await far.until(lambda: far.data)
        assert loop.time() - begun == pytest.approx(0.25)
        near.transport.abort()

    run_simulated(main(), latency_seconds=0.25)


def test_a_silent_address_neither_accepts_nor_refuses() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimulatedLoop)
        await loop.create_server(Recorder, "somewhere", 6650)
        loop.network.silence("somewhere", 6650)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(loop.create_connection(Recorder, "somewhere", 6650), 3600)
        loop.network.unsilence("somewhere", 6650)
        await loop.create_connection(Recorder, "somewhere", 6650)

    run_simulated(main())


def test_a_cancelled_connect_leaves_no_connection() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        far = Recorder()
        await loop.create_server(lambda: far, "h", 1)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(loop.create_connection(Recorder, "h", 1), 1.5)
        await far.seen("lost")
        await asyncio.sleep(5)
        assert not loop.network.connections

    run_simulated(main(), latency_seconds=1.0)


def test_the_window_bounds_what_is_under_way() -> None:
    async def main() -> None:
        near, far = await connected()
        far.transport.pause_reading()
        near.transport.write(b"x" * (WINDOW_BYTES + 7))
        await asyncio.sleep(1)
        assert near.transport.get_write_buffer_size() == 7
        assert not far.data
        near.transport.abort()

    run_simulated(main())


def test_tls_is_refused_and_not_ignored() -> None:
    async def main() -> None:
        with pytest.raises(NotImplementedError, match="TLS"):
            await asyncio.get_running_loop().create_connection(Recorder, "h", 1, ssl=True)

    run_simulated(main())


def test_what_goes_to_threads_is_done_in_the_loop() -> None:
    async def main() -> None:
        assert await asyncio.to_thread(sum, [1, 2]) == 3
        with pytest.raises(ZeroDivisionError):
            await asyncio.to_thread(lambda: 1 / 0)

    run_simulated(main())


def test_a_whole_broker_answers_and_hours_pass_at_once() -> None:
    async def main() -> bytes:
        async with Broker(clock=VirtualClock(), chance=random.Random(1), web_port=8080):
            reader, writer = await asyncio.open_connection("localhost", 8080)
            writer.write(
                b"GET /admin/v2/clusters HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
            )
            answer = await reader.read()
            writer.close()
            await asyncio.sleep(3600)
            return answer

    first = run_simulated(main(), latency_seconds=0.001)
    assert first.endswith(b'["standalone"]')
    assert run_simulated(main(), latency_seconds=0.001) == first


def test_a_stalled_host_goes_on_where_it_was_in_order() -> None:
    async def work() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimulatedLoop)
        there, here = Recorder(), Recorder()
        await loop.create_server(lambda: there, "server", 1)
        transport, _ = await loop.create_connection(lambda: here, "server", 1)
        transport.write(b"1")
        await asyncio.sleep(1)
        loop.network.stall("server")
        transport.write(b"2")
        there.transport.write(b"a")
        await asyncio.sleep(60)
        assert (bytes(there.data), bytes(here.data)) == (b"1", b"")
        loop.network.unstall("server")
        there.transport.write(b"b")
        transport.write(b"3")
        await asyncio.sleep(1)
        assert (bytes(there.data), bytes(here.data)) == (b"123", b"ab")
        transport.abort()

    run_simulated(work(), latency_seconds=0.01)
