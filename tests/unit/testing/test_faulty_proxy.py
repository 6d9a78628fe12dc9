"""The proxy forwards whole and in order, does what its faults say, and replays from its seed."""

from __future__ import annotations

import asyncio
import random

import pytest

from pulsar_py.testing.faulty_proxy import Faults, FaultyProxy
from pulsar_py.testing.network import run_simulated


class Echo(asyncio.Protocol):
    def connection_made(self, transport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.transport.write(data)


class Client(asyncio.Protocol):
    """Asks, and waits for as many bytes."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.changed = asyncio.Event()
        self.is_lost = False
        self.error = None

    def connection_made(self, transport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.data += data
        self.changed.set()

    def connection_lost(self, exc) -> None:
        self.is_lost, self.error = True, exc
        self.changed.set()

    async def take(self, count: int, seconds: float = 60) -> bytes:
        """So many bytes; raises when the connection is gone, or the time is up."""
        async with asyncio.timeout(seconds):
            while len(self.data) < count:
                if self.is_lost:
                    raise ConnectionResetError
                self.changed.clear()
                await self.changed.wait()
        taken = bytes(self.data[:count])
        del self.data[:count]
        return taken

    async def ask(self, data: bytes) -> bytes:
        self.transport.write(data)
        return await self.take(len(data))


async def connect() -> Client:
    _, client = await asyncio.get_running_loop().create_connection(Client, "proxy", 7)
    return client


async def proxied(seed: int = 1, faults: Faults | None = None) -> FaultyProxy:
    await asyncio.get_running_loop().create_server(Echo, "target", 7)
    proxy = FaultyProxy("target", 7, random.Random(seed), faults=faults)
    await proxy.start("proxy", 7)
    return proxy


def test_without_faults_everything_passes() -> None:
    async def main() -> None:
        proxy = await proxied()
        client = await connect()
        data = random.Random(2).randbytes(1_000_000)
        assert await client.ask(data) == data
        client.transport.close()
        await asyncio.sleep(1)
        assert client.is_lost
        assert proxy.connections_count == 0
        await proxy.close()

    run_simulated(main())


def test_pieces_are_late_but_in_order() -> None:
    async def main() -> float:
        faults = Faults(delay_seconds=(0.1, 2.0), piece_bytes=50)
        proxy = await proxied(faults=faults)
        client = await connect()
        data = bytes(range(256)) * 4
        assert await client.ask(data) == data
        await proxy.close()
        return asyncio.get_running_loop().time()

    elapsed = run_simulated(main())
    assert elapsed > 0.2
    assert run_simulated(main()) == elapsed


def test_a_cut_resets_both_ends() -> None:
    async def main() -> None:
        proxy = await proxied()
        client = await connect()
        await client.ask(b"hello")
        proxy.cut()
        with pytest.raises(ConnectionResetError):
            await client.take(1)
        assert isinstance(client.error, ConnectionResetError)
        assert proxy.connections_count == 0
        await proxy.close()

    run_simulated(main())


def test_a_stall_holds_back_and_then_delivers() -> None:
    async def main() -> None:
        proxy = await proxied()
        client = await connect()
        await client.ask(b"hello")
        proxy.stall()
        client.transport.write(b"wait")
        with pytest.raises(TimeoutError):
            await client.take(4, 1000)
        proxy.resume()
        assert await client.take(4) == b"wait"
        await proxy.close()

    run_simulated(main())


@pytest.mark.parametrize(
    ("kind", "faults"),
    [
        ("cut", Faults(cut_every_seconds=10)),
        ("torn", Faults(torn_every_seconds=10)),
        ("stall", Faults(stall_every_seconds=10)),
        ("drop", Faults(drop_every_seconds=10)),
        ("outage", Faults(outage_every_seconds=10)),
    ],
)
def test_faults_come_by_themselves_and_replay(kind: str, faults: Faults) -> None:
    async def main() -> tuple[int, list[float]]:
        proxy = await proxied(7, faults)
        loop = asyncio.get_running_loop()
        answers = []
        while loop.time() < 1000:
            client = await connect()
            try:
                while loop.time() < 1000:
                    assert await client.ask(b"0123456789") == b"0123456789"
                    answers.append(loop.time())
                    await asyncio.sleep(1)
            except (ConnectionError, TimeoutError):
                await asyncio.sleep(1)
            client.transport.close()
        proxy.calm()
        await asyncio.sleep(100)
        assert await (await connect()).ask(b"calm") == b"calm"
        await proxy.close()
        assert proxy.seen[kind] > 5
        return proxy.seen[kind], answers

    first = run_simulated(main())
    assert len(first[1]) > 50
    assert run_simulated(main()) == first


def test_a_target_that_is_down_cuts_who_connects() -> None:
    async def main() -> None:
        proxy = FaultyProxy("nowhere", 7, random.Random(1))
        await proxy.start("proxy", 7)
        client = await connect()
        with pytest.raises(ConnectionResetError):
            await client.take(1)
        await proxy.close()

    run_simulated(main())
