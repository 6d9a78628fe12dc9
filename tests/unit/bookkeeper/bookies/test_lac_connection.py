from __future__ import annotations

import asyncio
import struct

import pytest

from pulsar_py.bookkeeper.bookies import lac_connection
from pulsar_py.bookkeeper.bookies.lac_connection import LacConnection
from pulsar_py.common.errors import StoreBusyError, StoreUnavailableError
from pulsar_py.proto import BookkeeperProtocol_pb2 as pb
from pulsar_py.testing.network import run_simulated
from tests.unit.bookkeeper.scripted_bookie import ScriptedBookie

MAX_FRAME_BYTES = 1000


async def connected(bookie: ScriptedBookie) -> LacConnection:
    await bookie.start()
    _, connection = await asyncio.get_running_loop().create_connection(
        lambda: LacConnection(MAX_FRAME_BYTES), bookie.host, bookie.port
    )
    return connection


def test_each_gets_the_answer_to_its_own_request() -> None:
    async def work() -> None:
        bookie = ScriptedBookie(3181)
        bookie.explicit_lacs = {each: b"%d" % each for each in range(3)}
        connection = await connected(bookie)
        answers = await asyncio.gather(*(connection.read_lac(each) for each in range(4)))
        assert [each.body for each in answers] == [b"0", b"1", b"2", b""]
        assert answers[3].status == pb.ENOENTRY
        connection.lose("it is over")
        bookie.stop()

    run_simulated(work())


def test_a_lost_connection_answers_everybody() -> None:
    async def work() -> None:
        bookie = ScriptedBookie(3181)
        connection = await connected(bookie)
        bookie.is_mute = True
        asking = asyncio.get_running_loop().create_task(connection.read_lac(1))
        await asyncio.sleep(0.1)
        bookie.cut()
        with pytest.raises(StoreUnavailableError, match="the connection is lost"):
            await asking
        with pytest.raises(StoreUnavailableError, match="the connection is lost"):
            await connection.read_lac(1)
        bookie.stop()

    run_simulated(work())


def test_what_cannot_be_read_ends_the_connection() -> None:
    async def work() -> None:
        for garbage, reason in (
            (struct.pack(">I", MAX_FRAME_BYTES + 1), "an answer of 1001 bytes, at most 1000 may"),
            (struct.pack(">I", 1) + b"\xff", "can't be read"),
        ):
            bookie = ScriptedBookie(3181)
            connection = await connected(bookie)
            bookie.is_mute = True
            asking = asyncio.get_running_loop().create_task(connection.read_lac(1))
            await asyncio.sleep(0.1)
            bookie.connections[0].transport.write(garbage)
            with pytest.raises(StoreUnavailableError, match=reason):
                await asking
            assert connection.is_lost
            bookie.stop()

    run_simulated(work())


def test_requests_that_wait_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lac_connection, "MAX_WAITING_COUNT", 2)

    async def work() -> None:
        bookie = ScriptedBookie(3181)
        connection = await connected(bookie)
        bookie.is_mute = True
        loop = asyncio.get_running_loop()
        waiting = [loop.create_task(connection.read_lac(each)) for each in range(2)]
        await asyncio.sleep(0.1)
        with pytest.raises(StoreBusyError, match="2 requests wait"):
            await connection.read_lac(3)
        waiting[0].cancel()  # nobody waits any more, so there is room
        await asyncio.sleep(0)
        bookie.is_mute = False
        assert (await connection.read_lac(3)).status == pb.ENOENTRY
        connection.lose("it is over")
        with pytest.raises(StoreUnavailableError):
            await waiting[1]
        bookie.stop()

    run_simulated(work())
