from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from pulsar_py.bookkeeper.bookies.bookies import RETRY_SECONDS, Bookies
from pulsar_py.bookkeeper.bookies.connection import ConnectionLimits
from pulsar_py.bookkeeper.bookies.registry import BookieRegistry
from pulsar_py.bookkeeper.protocol import frames
from pulsar_py.metadata.memory_store import MemoryMetadataStore
from pulsar_py.testing.clock import VirtualClock
from pulsar_py.testing.network import SimulatedLoop, run_simulated
from tests.unit.bookkeeper.bookies.test_connection import Asker, add, read
from tests.unit.bookkeeper.scripted_bookie import ScriptedBookie

LIMITS = ConnectionLimits(
    connect_timeout_seconds=3.0, request_timeout_seconds=10.0, max_waiting_bytes=1_000_000
)


def with_bookies(test: Callable[[ScriptedBookie, Bookies], Awaitable[None]]) -> None:
    async def work() -> None:
        clock = VirtualClock()
        bookie = ScriptedBookie(3181)
        await bookie.start()
        registry = BookieRegistry(MemoryMetadataStore(clock), "/ledgers")
        bookies = Bookies(registry, clock, LIMITS)
        await test(bookie, bookies)
        await bookies.close()
        await bookies.close()
        assert bookies.connected_count == 0
        registry.close()
        bookie.stop()

    run_simulated(work())


def test_requests_share_one_connection_which_is_made_for_them() -> None:
    async def test(bookie: ScriptedBookie, bookies: Bookies) -> None:
        asker = Asker()
        link = bookies.link("bookie:3181")
        for entry_id in range(3):
            link.send(add(asker, entry_id))
        await asyncio.sleep(0.1)
        link.send(read(asker, 2))
        await asyncio.sleep(0.1)
        assert [code for _, _, code in asker.all] == [0] * 4
        assert bookie.connects_count == bookies.connected_count == 1
        assert bookies.link("bookie:3181") is link
        assert not bookies.is_failing("bookie:3181")
        assert bookies.waiting_bytes == 0

    with_bookies(test)


def test_a_bookie_that_refuses_is_failing_and_left_alone_for_a_moment() -> None:
    async def test(bookie: ScriptedBookie, bookies: Bookies) -> None:
        asker = Asker()
        link = bookies.link("bookie:9999")
        link.send(add(asker, 0))
        await asyncio.sleep(0.1)
        assert asker.all == [(1, 0, frames.LOST)]
        assert bookies.is_failing("bookie:9999")
        late = ScriptedBookie(9999)
        await late.start()
        link.send(add(asker, 1))
        await asyncio.sleep(RETRY_SECONDS - 0.2)
        assert not late.connects_count
        await asyncio.sleep(0.2)
        assert asker.all[1:] == [(1, 1, 0)]
        assert not bookies.is_failing("bookie:9999")
        late.stop()

    with_bookies(test)


def test_a_bookie_that_does_not_accept_is_given_up_in_time() -> None:
    async def test(bookie: ScriptedBookie, bookies: Bookies) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimulatedLoop)
        loop.network.silence("elsewhere", 3181)
        asker = Asker()
        bookies.link("elsewhere:3181").send(add(asker, 0))
        await asyncio.sleep(3.1)
        assert asker.all == [(1, 0, frames.LOST)]

    with_bookies(test)


def test_after_a_cut_the_next_request_makes_another_connection() -> None:
    async def test(bookie: ScriptedBookie, bookies: Bookies) -> None:
        asker = Asker()
        link = bookies.link("bookie:3181")
        link.send(add(asker, 0))
        await asyncio.sleep(0.1)
        bookie.cut()
        await asyncio.sleep(RETRY_SECONDS + 0.1)
        assert bookies.is_failing("bookie:3181")
        assert not link.is_connected
        link.send(add(asker, 1))
        await asyncio.sleep(0.1)
        assert [code for _, _, code in asker.all] == [0, 0]
        assert bookie.connects_count == 2
        assert not bookies.is_failing("bookie:3181")

    with_bookies(test)


def test_closing_answers_who_waits_for_a_connection_or_an_answer() -> None:
    async def test(bookie: ScriptedBookie, bookies: Bookies) -> None:
        bookie.is_mute = True
        asker = Asker()
        bookies.link("bookie:3181").send(add(asker, 0))
        await asyncio.sleep(0.1)
        bookies.link("bookie:3182").send(add(asker, 1))
        await bookies.close()
        assert asker.all == [(1, 0, frames.LOST), (1, 1, frames.LOST)]
        bookies.link("bookie:3181").send(add(asker, 2))
        await asyncio.sleep(0.1)
        assert len(asker.all) == 3

    with_bookies(test)


def test_what_waits_for_a_connection_is_bounded_and_reads_go_on() -> None:
    async def test(bookie: ScriptedBookie, bookies: Bookies) -> None:
        asker = Asker()
        link = bookies.link("bookie:3181")
        size_bytes = LIMITS.max_waiting_bytes // 2
        for entry_id in range(3):
            link.send(add(asker, entry_id, size_bytes - 100))
        link.send(read(asker, 0))
        await asyncio.sleep(0.1)
        assert asker.all[0] == (1, 2, frames.TOO_MUCH_WAITS)
        assert sorted(asker.all[1:]) == [(1, 0, 0), (1, 1, 0), (2, 0, 0)]

    with_bookies(test)


def test_figures_tell_what_a_bookie_did_and_how_it_is() -> None:
    async def test(bookie: ScriptedBookie, bookies: Bookies) -> None:
        asker = Asker()
        bookies.link("bookie:3181").send(add(asker, 0))
        bookies.link("bookie:9999").send(add(asker, 0))
        await asyncio.sleep(0.1)
        bookie.is_mute = True
        bookies.link("bookie:3181").send(add(asker, 1, 1000))
        one, other = bookies.statistics()
        assert (one.bookie_id, one.adds.count, one.errors) == ("bookie:3181", 1, {})
        assert (one.is_connected, one.is_failing, one.is_quarantined) == (True, False, False)
        assert one.pending_bytes > 1000
        assert (other.adds.count, other.errors) == (0, {"no connection": 1})
        assert (other.is_connected, other.is_failing) == (False, True)

    with_bookies(test)


def test_one_lost_connection_is_one_failure_however_much_waited() -> None:
    async def test(bookie: ScriptedBookie, bookies: Bookies) -> None:
        bookie.is_mute = True
        asker = Asker()
        failing: list[str] = []
        bookies.on_failing = failing.append
        for entry_id in range(50):
            bookies.link("bookie:3181").send(add(asker, entry_id))
        await asyncio.sleep(0.1)
        bookie.cut()
        await asyncio.sleep(0.1)
        assert len(asker.all) == 50
        (one,) = bookies.statistics()
        assert one.errors == {"no connection": 50}
        assert (one.is_failing, one.is_quarantined) == (True, False)
        assert failing == ["bookie:3181"]

    with_bookies(test)
