from __future__ import annotations

import asyncio
import struct
from collections.abc import Awaitable, Callable, Sequence

import pytest
import uvloop

from pulsar_py.bookkeeper.bookies.connection import BookieConnection, ConnectionLimits
from pulsar_py.bookkeeper.bookies.requests import AddRequest, BookieRequest
from pulsar_py.bookkeeper.protocol import frames
from pulsar_py.bookkeeper.protocol.digest import master_key
from pulsar_py.bookkeeper.protocol.frames import (
    BookieAnswer,
    BookieCode,
    BookieOperation,
    RequestFlags,
)
from pulsar_py.testing.clock import VirtualClock
from pulsar_py.testing.network import run_simulated
from tests.unit.bookkeeper.scripted_bookie import ScriptedBookie, answer

LIMITS = ConnectionLimits(
    request_timeout_seconds=10.0, max_waiting_bytes=1000, max_frame_bytes=10_000
)
KEY = master_key(b"")


class Asker:
    """Remembers its answers, the groups they came in, and when."""

    def __init__(self) -> None:
        self.groups: list[list[tuple[int, int, int]]] = []
        self.times: list[float] = []
        self.data: list[bytes] = []

    def on_answers(self, answers: Sequence[tuple[BookieRequest, BookieAnswer]]) -> None:
        for request, each in answers:
            assert (request.operation, request.entry_id) == (each.operation, each.entry_id)
        self.groups.append([(each.operation, each.entry_id, each.code) for _, each in answers])
        self.data += [each.data for _, each in answers]
        self.times.append(asyncio.get_running_loop().time())

    def on_stored(self, entry_ids: Sequence[int]) -> None:
        self.groups.append([(1, entry_id, 0) for entry_id in entry_ids])
        self.times.append(asyncio.get_running_loop().time())

    @property
    def all(self) -> list[tuple[int, int, int]]:
        return [each for group in self.groups for each in group]


class Failures(Asker):
    """Remembers the errors of runs: the entry that each names, and the code."""

    def __init__(self) -> None:
        super().__init__()
        self.codes: list[tuple[int, int]] = []

    def on_answers(self, answers: Sequence[tuple[BookieRequest, BookieAnswer]]) -> None:
        self.codes += [(each.entry_id, each.code) for _, each in answers]


def add(asker: Asker, entry_id: int, size: int = 0) -> BookieRequest:
    stored = struct.pack(">qqqq", 7, entry_id, -1, 0) + bytes(size)
    head = frames.add_head(KEY, len(stored), RequestFlags.NONE)
    return AddRequest(7, entry_id, entry_id, (head, stored), asker)


def add_run(asker: Asker, first: int, last: int) -> AddRequest:
    frames_of_all = [
        piece for entry_id in range(first, last + 1) for piece in add(asker, entry_id).pieces
    ]
    return AddRequest(7, first, last, frames_of_all, asker)


def read(
    asker: Asker, entry_id: int, flags: RequestFlags = RequestFlags.NONE, ledger_id: int = 7
) -> BookieRequest:
    key = KEY if RequestFlags.FENCE in flags else b""
    frame = frames.read_request(ledger_id, entry_id, flags, key)
    return BookieRequest(BookieOperation.READ, ledger_id, entry_id, (frame,), asker)


Test = Callable[[ScriptedBookie, BookieConnection, list[str]], Awaitable[None]]


def connected(test: Test) -> None:
    async def work() -> None:
        bookie = ScriptedBookie(3181)
        await bookie.start()
        lost: list[str] = []
        _, connection = await asyncio.get_running_loop().create_connection(
            lambda: BookieConnection(VirtualClock(), LIMITS, lost.append), "bookie", 3181
        )
        await test(bookie, connection, lost)
        connection.lose("the test is over")
        assert len(lost) == 1
        assert connection.waiting_bytes == 0
        bookie.stop()

    run_simulated(work())


def test_answers_of_one_read_come_together_to_who_asked() -> None:
    async def test(bookie: ScriptedBookie, connection: BookieConnection, lost: list[str]) -> None:
        one, other = Asker(), Asker()
        for entry_id in range(4):
            connection.send(add(one if entry_id % 2 else other, entry_id))
        assert not bookie.asked
        await asyncio.sleep(0.1)
        assert one.groups == [[(1, 1, 0), (1, 3, 0)]]
        assert other.groups == [[(1, 0, 0), (1, 2, 0)]]
        assert connection.waiting_bytes == 0
        connection.send(read(one, 2))
        await asyncio.sleep(0.1)
        assert one.data[-1] == bookie.entries[7][2]

    connected(test)


def test_answers_may_come_in_any_order_and_in_pieces() -> None:
    async def test(bookie: ScriptedBookie, connection: BookieConnection, lost: list[str]) -> None:
        bookie.is_mute = True
        asker = Asker()
        connection.send(add(asker, 0))
        connection.send(add(asker, 1))
        connection.send(read(asker, 0))
        await asyncio.sleep(0.1)
        said = answer(2, 0, 7, 0, b"whole") + answer(1, 0, 7, 1) + answer(1, 101, 7, 0)
        for at in range(len(said)):
            bookie.connections[0].transport.write(said[at : at + 1])
            await asyncio.sleep(0.01)
        assert asker.all == [(2, 0, 0), (1, 1, 0), (1, 0, BookieCode.EIO)]
        assert asker.data[0] == b"whole"

    connected(test)


def test_a_run_is_told_as_it_is_stored_and_an_error_once() -> None:
    async def test(bookie: ScriptedBookie, connection: BookieConnection, lost: list[str]) -> None:
        bookie.is_mute = True
        asker = Asker()
        connection.send(add_run(asker, 0, 3))
        connection.send(add_run(asker, 4, 5))
        await asyncio.sleep(0.1)
        assert bookie.adds() == [0, 1, 2, 3, 4, 5]
        said = [answer(1, 0, 7, each) for each in (0, 1, 3, 4)]
        bookie.connections[0].transport.write(b"".join(said))
        await asyncio.sleep(0.1)
        assert asker.groups == [[(1, 0, 0), (1, 1, 0), (1, 3, 0), (1, 4, 0)]]
        bookie.connections[0].transport.write(answer(1, 0, 7, 2) + answer(1, 0, 7, 5))
        await asyncio.sleep(0.1)
        assert asker.all[4:] == [(1, 2, 0), (1, 5, 0)]
        assert connection.waiting_bytes == 0
        failing = Failures()
        connection.send(add_run(failing, 6, 8))
        await asyncio.sleep(0.1)
        bookie.connections[0].transport.write(answer(1, 0, 7, 6) + answer(1, 104, 7, 7))
        await asyncio.sleep(0.1)
        bookie.connections[0].transport.write(answer(1, 0, 7, 8))
        await asyncio.sleep(0.1)
        assert failing.codes == [(7, BookieCode.EFENCED)]
        assert [entry_id for _, entry_id, _ in failing.all] == [6, 8]
        assert connection.waiting_bytes == 0

    connected(test)


@pytest.mark.parametrize("cut", [1, 28, 29, 100, 1000])
def test_answers_of_runs_are_told_however_they_are_cut(cut: int) -> None:
    async def test(bookie: ScriptedBookie, connection: BookieConnection, lost: list[str]) -> None:
        bookie.is_mute = True
        asker = Asker()
        connection.send(add_run(asker, 0, 4))
        connection.send(add_run(asker, 5, 9))
        await asyncio.sleep(0.1)
        order = [0, 1, 3, 2, 4, 5, 6, 7, 9, 8]
        said = b"".join(answer(1, 0, 7, each) for each in order)
        for at in range(0, len(said), cut):
            bookie.connections[0].transport.write(said[at : at + cut])
            await asyncio.sleep(0.01)
        assert [entry_id for _, entry_id, _ in asker.all] == order
        assert connection.waiting_bytes == 0
        assert not lost

    connected(test)


def test_an_answer_to_an_entry_of_a_run_that_has_one_already_ends_the_connection() -> None:
    async def test(bookie: ScriptedBookie, connection: BookieConnection, lost: list[str]) -> None:
        bookie.is_mute = True
        connection.send(add_run(Failures(), 0, 9))
        await asyncio.sleep(0.1)
        said = b"".join(answer(1, 0, 7, each) for each in (0, 1, 2, 1))
        bookie.connections[0].transport.write(said)
        await asyncio.sleep(0.1)
        (reason,) = lost
        assert reason.endswith("an answer to a request that was not sent: the add of 7:1")

    connected(test)


def test_a_run_without_answer_fails_once_with_its_first_entry() -> None:
    async def test(bookie: ScriptedBookie, connection: BookieConnection, lost: list[str]) -> None:
        bookie.is_mute = True
        failing = Failures()
        connection.send(add_run(failing, 0, 2))
        await asyncio.sleep(0.1)
        bookie.connections[0].transport.write(answer(1, 0, 7, 0))
        await asyncio.sleep(8)
        connection.send(read(Asker(), -1))
        bookie.connections[0].transport.write(answer(2, 2, 7, -1))
        await asyncio.sleep(4)
        assert failing.codes == [(1, frames.TIMED_OUT)]
        bookie.connections[0].transport.write(answer(1, 0, 7, 1))
        await asyncio.sleep(0.1)
        assert failing.all == [(1, 0, 0)], "nobody waits any more"

    connected(test)


def test_requests_that_are_answered_alike_go_one_after_the_other() -> None:
    async def test(bookie: ScriptedBookie, connection: BookieConnection, lost: list[str]) -> None:
        bookie.is_mute = True
        plain, fencing = Asker(), Asker()
        connection.send(read(plain, -1))
        connection.send(read(fencing, -1, frames.FENCE_AND_READ))
        connection.send(read(fencing, -1, ledger_id=8))
        await asyncio.sleep(0.1)
        assert [flags for _, flags, _, _ in bookie.asked] == [0, 0]

        bookie.connections[0].transport.write(answer(2, 2, 7, -1))
        await asyncio.sleep(0.1)

        assert plain.all == [(2, -1, 2)]
        assert fencing.all == []
        assert bookie.asked[-1] == (2, 1, 7, -1)

    connected(test)


def test_a_request_without_answer_is_answered_in_time_and_keeps_its_place() -> None:
    async def test(bookie: ScriptedBookie, connection: BookieConnection, lost: list[str]) -> None:
        asker, again = Asker(), Asker()
        bookie.is_mute = True
        connection.send(read(asker, -1))
        await asyncio.sleep(9)
        bookie.is_mute = False
        connection.send(add(Asker(), 5))  # it lives
        await asyncio.sleep(4)
        assert asker.all == [(2, -1, frames.TIMED_OUT)]
        assert 10 <= asker.times[0] <= 12.5
        connection.send(read(again, -1, frames.FENCE_AND_READ))
        await asyncio.sleep(1)
        assert (2, 1, 7, -1) not in bookie.asked, "the late answer could be taken for its own"
        bookie.connections[0].transport.write(answer(2, 0, 7, -1, b"late"))
        await asyncio.sleep(1)
        assert again.all == [(2, -1, 0)]
        assert b"late" not in again.data
        assert not lost

    connected(test)


def test_what_waits_behind_another_is_answered_in_time_too() -> None:
    async def test(bookie: ScriptedBookie, connection: BookieConnection, lost: list[str]) -> None:
        bookie.says = lambda operation, _ledger, _entry: None
        asker, behind = Asker(), Asker()
        bookie.is_mute = True
        connection.send(read(asker, -1))
        await asyncio.sleep(5)
        connection.send(read(behind, -1))
        for _ in range(12):
            bookie.is_mute = False
            connection.send(add(Asker(), 5))
            await asyncio.sleep(1)
        assert behind.all == [(2, -1, frames.TIMED_OUT)]
        assert behind.times[0] <= 17.5
        assert not lost

    connected(test)


def test_a_silent_bookie_loses_its_connection() -> None:
    async def test(bookie: ScriptedBookie, connection: BookieConnection, lost: list[str]) -> None:
        bookie.is_mute = True
        asker = Asker()
        connection.send(add(asker, 0))
        await asyncio.sleep(13)
        assert asker.all == [(1, 0, frames.TIMED_OUT)]
        assert lost == ["it said nothing for 10 seconds"]

    connected(test)


def test_a_lost_connection_answers_everybody_once() -> None:
    async def test(bookie: ScriptedBookie, connection: BookieConnection, lost: list[str]) -> None:
        bookie.is_mute = True
        asker = Asker()
        connection.send(add(asker, 0))
        connection.send(read(asker, -1))
        connection.send(read(asker, -1))
        await asyncio.sleep(0.1)
        bookie.cut()
        await asyncio.sleep(0.1)
        assert asker.groups == [[(1, 0, frames.LOST), (2, -1, frames.LOST), (2, -1, frames.LOST)]]
        assert len(lost) == 1
        connection.send(add(asker, 1))
        assert len(asker.all) == 3, "nobody is called from within send"
        await asyncio.sleep(0)
        assert asker.all[3:] == [(1, 1, frames.LOST)]

    connected(test)


def test_what_waits_is_bounded_in_bytes() -> None:
    async def test(bookie: ScriptedBookie, connection: BookieConnection, lost: list[str]) -> None:
        bookie.is_mute = True
        asker = Asker()
        for entry_id in range(3):
            connection.send(add(asker, entry_id, size=400))
        assert connection.waiting_bytes <= LIMITS.max_waiting_bytes
        await asyncio.sleep(0.1)
        assert asker.all == [(1, 2, frames.TOO_MUCH_WAITS)]
        assert bookie.adds() == [0, 1]

    connected(test)


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (struct.pack(">I", 10_001), "an answer of 10001 bytes"),
        (struct.pack(">I", 3) + b"abc", "answer has 3 bytes"),
        (answer(1, 0, 7, 9), "request that was not sent"),
    ],
)
def test_what_can_not_be_read_ends_the_connection(said: bytes, reason: str) -> None:
    async def test(bookie: ScriptedBookie, connection: BookieConnection, lost: list[str]) -> None:
        bookie.is_mute = True
        asker = Asker()
        connection.send(add(asker, 0))
        connection.send(add(asker, 1))
        await asyncio.sleep(0.1)
        bookie.connections[0].transport.write(answer(1, 0, 7, 0) + said)
        await asyncio.sleep(0.1)
        assert asker.groups == [[(1, 0, 0)], [(1, 1, frames.LOST)]]
        assert reason in lost[0]

    connected(test)


def test_it_works_on_uvloop() -> None:
    async def work() -> None:
        came = asyncio.get_running_loop().create_future()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            length = int.from_bytes(await reader.readexactly(4))
            came.set_result(await reader.readexactly(length))
            writer.close()

        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            lost: asyncio.Future[str] = asyncio.get_running_loop().create_future()
            _, connection = await asyncio.get_running_loop().create_connection(
                lambda: BookieConnection(VirtualClock(), LIMITS, lost.set_result),
                "127.0.0.1",
                port,
            )
            asker = Asker()
            connection.send(read(asker, 5))
            assert (await came).endswith(struct.pack(">qq", 7, 5))
            await lost
            assert len(asker.all) == 1

    uvloop.run(work())


class TickingClock(VirtualClock):
    """A clock that goes on whenever it is looked at, as real ones do."""

    ticks_count = 0

    def monotonic_seconds(self) -> float:
        self.ticks_count += 1
        return super().monotonic_seconds() + self.ticks_count / 1000


def test_what_is_sent_in_one_turn_has_one_deadline_so_that_it_is_counted_together() -> None:
    async def work() -> None:
        bookie = ScriptedBookie(3181)
        await bookie.start()
        clock = TickingClock()
        _, connection = await asyncio.get_running_loop().create_connection(
            lambda: BookieConnection(clock, LIMITS, lambda reason: None), "bookie", 3181
        )
        asker = Asker()
        requests = [add(asker, entry_id) for entry_id in range(4)]
        for request in requests[:3]:
            connection.send(request)
        await asyncio.sleep(0)
        connection.send(requests[3])
        first, *others = (request.deadline for request in requests)
        assert others[:2] == [first, first]
        assert others[2] > first
        connection.lose("the test is over")
        bookie.stop()

    run_simulated(work())
