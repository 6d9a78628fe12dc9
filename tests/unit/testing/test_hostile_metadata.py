"""HostileMetadata: each fault does what it says; without any it passes the contract suite."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Coroutine

import pytest

from pulsar_py.common.errors import (
    MetadataError,
    MetadataOutcomeUnknownError,
    MetadataUnavailableError,
    SessionInDoubtError,
)
from pulsar_py.metadata.store import (
    MUST_NOT_EXIST,
    MetadataLimits,
    Notification,
    NotificationType,
    SessionEvent,
)
from pulsar_py.testing.clock import VirtualClock, run_virtual
from pulsar_py.testing.hostile_metadata import HostileClient, HostileMetadata
from pulsar_py.testing.hostile_service import HostileSettings

LOST, IN_DOUBT, RECONNECTED, NEW_SESSION = SessionEvent


class World:
    """A service with two clients, and what the first one's session tells."""

    def __init__(self, settings: HostileSettings, seed: int = 3) -> None:
        self.clock = VirtualClock()
        self.service = HostileMetadata(random.Random(seed), VirtualClock(), settings)
        self.one = self.service.connect("one", self.clock)
        self.other = self.service.connect("other", VirtualClock())
        self.events: list[SessionEvent] = []

    async def own(self, path: str) -> None:
        session = await self.one.open_session()
        session.listen(self.events.append)
        await self.one.put(path, b"", expected_version=MUST_NOT_EXIST, session=session)


def test_a_frozen_clients_session_expires_without_news() -> None:
    async def run() -> None:
        world = World(HostileSettings(session_timeout_seconds=12))
        await world.own("/e")
        session = await world.one.open_session()
        old = session.session_id
        world.one.freeze()
        await asyncio.sleep(9.9)
        assert await world.other.exists("/e")
        await asyncio.sleep(0.2)
        assert not session.is_good
        assert await world.other.exists("/e")
        with pytest.raises(SessionInDoubtError):
            await world.one.put("/a", b"")
        await asyncio.sleep(4)
        assert not await world.other.exists("/e")
        assert (world.events, session.session_id) == ([], old)
        world.one.thaw()
        await asyncio.sleep(0.1)
        assert world.events == [IN_DOUBT, NEW_SESSION]
        assert session.session_id != old
        assert session.is_good
        assert await world.one.put("/a", b"") == 0

    run_virtual(run())


def test_a_short_cut_keeps_the_session_and_says_that_changes_were_missed() -> None:
    async def run() -> None:
        world = World(HostileSettings())
        await world.own("/e")
        heard: list[Notification] = []
        world.one.watch("/a", heard.append)
        world.one.cut(2)
        with pytest.raises(MetadataUnavailableError):
            await world.one.get("/a")
        await world.other.put("/a", b"")
        await asyncio.sleep(2.1)
        assert world.events == [LOST, RECONNECTED]
        assert heard == [Notification(NotificationType.ANYTHING, "/a")]
        assert await world.one.exists("/e")

    run_virtual(run())


def test_a_long_cut_ends_the_session() -> None:
    async def run() -> None:
        world = World(HostileSettings())
        await world.own("/e")
        world.one.expire()
        await asyncio.sleep(12)
        assert world.events == [LOST, IN_DOUBT, NEW_SESSION]
        assert not await world.one.exists("/e")

    run_virtual(run())


def test_a_process_that_slept_is_in_doubt_at_once() -> None:
    async def run() -> None:
        world = World(HostileSettings(session_timeout_seconds=12))
        await world.own("/e")
        session = await world.one.open_session()
        world.clock.jump(9.9)
        assert session.is_good
        world.clock.jump(0.2)
        assert not session.is_good
        with pytest.raises(SessionInDoubtError):
            await world.one.delete("/e")
        assert await world.one.exists("/e")  # and its answer is news
        assert session.is_good

    run_virtual(run())


def test_a_frozen_clients_request_that_was_sent_may_be_made() -> None:
    async def run() -> None:
        world = World(HostileSettings(delay_seconds=(0.5, 0.5)))
        async with asyncio.TaskGroup() as group:
            put = group.create_task(world.one.put("/a", b""))
            await asyncio.sleep(0)
            world.one.freeze()
            await asyncio.sleep(2)
            assert not put.done()
            assert await world.other.exists("/a")
            world.one.thaw()
        assert put.result() == 0

    run_virtual(run())


def test_unknown_outcomes_are_made_or_not_or_made_late() -> None:
    async def run() -> None:
        world = World(HostileSettings(unknown_share=1, late_seconds=(1, 2)))
        for number in range(60):
            with pytest.raises(MetadataOutcomeUnknownError, match="one: the answer was lost"):
                await world.one.put(f"/k/{number}", b"")
        at_once = len(await world.other.children("/k"))
        await asyncio.sleep(2.1)
        in_the_end = len(await world.other.children("/k"))
        assert 0 < at_once < in_the_end < 60

    run_virtual(run())


def test_silent_calls_are_done_or_not_and_the_time_limit_ends_them() -> None:
    async def run() -> None:
        limits = MetadataLimits(
            max_value_bytes=100, max_children_bytes=100, operation_timeout_seconds=5.0
        )
        world = World(HostileSettings(silent_share=1, limits=limits))
        began = asyncio.get_running_loop().time()
        calls = [world.one.put(f"/k{number}", b"") for number in range(20)]
        results = await asyncio.gather(*calls, return_exceptions=True)
        assert all(isinstance(each, MetadataOutcomeUnknownError) for each in results)
        assert asyncio.get_running_loop().time() - began == pytest.approx(5.0)
        with pytest.raises(MetadataUnavailableError, match="no answer in time"):
            await world.one.get("/k0")
        session = await world.one.open_session()
        assert session.is_good  # heartbeats are answered
        world.service.calm()
        assert 0 < len(await world.other.children("/")) < 20

    run_virtual(run())


def test_unavailable_changes_are_not_made() -> None:
    async def run() -> None:
        world = World(HostileSettings(unavailable_share=0.5))
        made = 0
        for number in range(40):
            try:
                await world.one.put(f"/k/{number}", b"")
                made += 1
            except MetadataUnavailableError:
                pass
        world.service.calm()
        assert 0 < made < 40
        assert len(await world.other.children("/k")) == made

    run_virtual(run())


def test_reads_lag_until_a_sync() -> None:
    async def run() -> None:
        world = World(HostileSettings(lag_seconds=5))
        await world.other.put("/a", b"")
        assert await world.other.exists("/a")
        assert not await world.one.exists("/a")
        await world.one.sync("/a")
        assert await world.one.exists("/a")

    run_virtual(run())


def test_lost_watches_say_that_anything_may_have_changed() -> None:
    async def run() -> None:
        world = World(HostileSettings(lost_watch_share=1, lost_watch_seconds=(1, 2)))
        heard: list[Notification] = []
        world.one.watch("/a", heard.append)
        await world.other.put("/a/b", b"")
        assert heard == []
        await asyncio.sleep(2.1)
        assert heard == [Notification(NotificationType.ANYTHING, "/a")]

    run_virtual(run())


def test_a_subtree_may_be_deleted_in_part_and_asked_again_it_goes_on() -> None:
    async def run() -> None:
        world = World(HostileSettings(partial_delete_share=1))
        for number in range(20):
            await world.one.put(f"/a/{number}", b"")
        with pytest.raises(MetadataOutcomeUnknownError, match="may be left"):
            await world.one.delete_recursive("/a")
        assert 0 < len(await world.one.children("/a")) < 20
        world.service.calm()
        await world.one.delete_recursive("/a")
        assert await world.one.children("/a") == []

    run_virtual(run())


def test_every_call_ends_in_time() -> None:
    async def run() -> None:
        limits = MetadataLimits(
            max_value_bytes=9, max_children_bytes=9, operation_timeout_seconds=3
        )
        world = World(HostileSettings(limits=limits, delay_seconds=(2, 2)))
        for ask, error in (
            (world.one.get("/a"), MetadataUnavailableError),
            (world.one.put("/a", b""), MetadataOutcomeUnknownError),
        ):
            with pytest.raises(error, match="no answer in time"):
                await ask
        assert asyncio.get_running_loop().time() == pytest.approx(6)
        world.one.freeze()
        with pytest.raises(MetadataUnavailableError):  # it was not even sent
            await world.one.put("/b", b"")

    run_virtual(run())


async def _work(client: HostileClient, log: list[str]) -> None:
    for number in range(150):
        try:
            await client.put(f"/k/{number % 7}", client.name.encode())
            log.append(f"{client.name} {number}")
        except MetadataError as error:
            log.append(f"{client.name} {error!r}")
        await asyncio.sleep(0.3)


async def _soak(seed: int) -> list[str]:
    settings = HostileSettings(
        delay_seconds=(0, 0.5), unavailable_share=0.02, unknown_share=0.05,
        lost_watch_share=0.1, lag_seconds=1, outage_every_seconds=10,
        expire_every_seconds=15, freeze_every_seconds=20,
    )  # fmt: skip
    world = World(settings, seed)
    log: list[str] = []
    session = await world.one.open_session()
    session.listen(lambda event: log.append(event.value))
    world.other.watch("/", lambda each: log.append(f"{each}"))
    await asyncio.gather(_work(world.one, log), _work(world.other, log))
    world.service.calm()
    for client in (world.one, world.other):
        await client.close()
    return log


def test_a_seed_replays_exactly() -> None:
    def play(soak: Coroutine[object, object, list[str]]) -> list[str]:
        return run_virtual(soak)

    first = play(_soak(5))
    assert first == play(_soak(5))
    assert first != play(_soak(6))
    assert {"connection lost", "reconnected", "new session"} <= set(first)


def test_a_good_session_still_has_its_keys_whatever_happens() -> None:
    async def run(seed: int) -> int:
        settings = HostileSettings(
            session_timeout_seconds=3, delay_seconds=(0, 1),
            outage_every_seconds=10, freeze_every_seconds=10, freeze_seconds=(0.5, 6),
        )  # fmt: skip
        world = World(settings, seed)
        session = await world.one.open_session()
        server = world.service.service
        doubts = 0
        for _ in range(400):
            await asyncio.sleep(0.1)
            if session.is_good:
                assert server.is_alive(session.session_id)
            else:
                doubts += 1
        return doubts

    assert all(run_virtual(run(seed)) > 0 for seed in range(5))


def test_no_change_of_unknown_outcome_is_made_after_a_sync() -> None:
    async def is_made(seed: int) -> bool:
        world = World(HostileSettings(unknown_share=1.0), seed)
        with pytest.raises(MetadataOutcomeUnknownError):
            await world.one.put("/a", b"")
        await world.one.sync("/a")
        made = await world.one.exists("/a")
        await asyncio.sleep(6)  # longer than a late change takes
        await world.one.sync("/a")
        assert await world.one.exists("/a") == made
        return made

    assert {run_virtual(is_made(seed)) for seed in range(20)} == {True, False}


def test_a_client_that_is_cut_off_is_never_heard_of_again() -> None:
    async def run() -> None:
        world = World(HostileSettings(delay_seconds=(0.01, 0.01)))
        await world.own("/e")
        put = asyncio.get_running_loop().create_task(world.one.put("/a", b""))
        await asyncio.sleep(0.005)
        world.one.cut_off()
        later = asyncio.get_running_loop().create_task(world.one.put("/b", b""))
        await asyncio.sleep(1)
        world.one.thaw()
        await asyncio.sleep(20)
        assert await world.other.exists("/a")  # it was under way
        assert not await world.other.exists("/b")
        assert not await world.other.exists("/e")
        assert not put.done()
        assert world.events == []
        for task in (put, later):
            task.cancel()
        await asyncio.wait((put, later))

    run_virtual(run())
