"""Two protocols of one process talk as over TCP: in order, bounded, each told of the end once."""

from __future__ import annotations

import asyncio

from pulsar_py.common.network.in_process import InProcessTransport, connect_in_process


class Recorder(asyncio.Protocol):
    def __init__(self) -> None:
        self.transport: InProcessTransport | None = None
        self.received = bytearray()
        self.calls: list[str] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, InProcessTransport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.received += data

    def pause_writing(self) -> None:
        self.calls.append("pause")

    def resume_writing(self) -> None:
        self.calls.append("resume")

    def connection_lost(self, exc: Exception | None) -> None:
        self.calls.append("lost")


class Buffered(asyncio.BufferedProtocol):
    """A protocol with a small buffer of its own."""

    def __init__(self) -> None:
        self.buffer = bytearray(3)
        self.received = bytearray()

    def get_buffer(self, sizehint: int) -> bytearray:
        return self.buffer

    def buffer_updated(self, nbytes: int) -> None:
        self.received += self.buffer[:nbytes]


async def turns(count: int = 5) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def connected() -> tuple[Recorder, Recorder, InProcessTransport, InProcessTransport]:
    near, far = Recorder(), Recorder()
    here = connect_in_process(near, far, peername=("192.0.2.1", 4))
    assert far.transport is not None
    return near, far, here, far.transport


async def test_bytes_arrive_in_order_and_not_within_the_call() -> None:
    near, far, here, there = connected()
    here.write(b"one ")
    here.writelines([b"two ", memoryview(b"three")])
    there.write(bytearray(b"back"))
    assert not far.received
    await turns()
    assert (bytes(far.received), bytes(near.received)) == (b"one two three", b"back")
    assert there.get_extra_info("peername") == ("192.0.2.1", 4)


async def test_a_protocol_with_a_buffer_of_its_own_gets_everything() -> None:
    near, far = Buffered(), Recorder()
    connect_in_process(near, far)
    assert far.transport is not None
    far.transport.write(b"ten bytes!")
    await turns()
    assert near.received == b"ten bytes!"


async def test_who_is_not_read_pauses_and_goes_on_when_it_is() -> None:
    near, far, here, there = connected()
    here.set_write_buffer_limits(high=10)
    there.pause_reading()
    here.write(b"eleven byte")
    await turns()
    assert near.calls == ["pause"]
    assert here.get_write_buffer_size() == 11
    assert not far.received
    there.resume_reading()
    await turns()
    assert near.calls == ["pause", "resume"]
    assert far.received == b"eleven byte"


async def test_close_sends_what_is_queued_and_tells_both_once() -> None:
    near, far, here, there = connected()
    here.write(b"last")
    here.close()
    here.write(b"dropped")
    there.close()
    await turns()
    here.abort()
    await turns()
    assert (near.calls, far.calls) == (["lost"], ["lost"])


async def test_a_closing_end_is_read_to_its_end() -> None:
    _, far, here, _ = connected()
    here.write(b"last")
    here.close()
    await turns()
    assert far.received == b"last"


async def test_abort_loses_what_is_queued() -> None:
    near, far, here, _ = connected()
    here.write(b"lost")
    here.abort()
    await turns()
    assert not far.received
    assert (near.calls, far.calls) == (["lost"], ["lost"])
    assert here.is_closing()
