from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from pulsar_py.metadata.store import SessionEvent
from pulsar_py.testing.clock import VirtualClock, run_virtual
from pulsar_py.zookeeper.session import ZooKeeperSession

PASSWORD = bytes(16)


async def closed(session: ZooKeeperSession) -> None:
    session.retire()


def started() -> tuple[ZooKeeperSession, list[SessionEvent]]:
    session = ZooKeeperSession(VirtualClock(), closed)
    events: list[SessionEvent] = []
    session.listen(events.append)
    assert session.begin(5, PASSWORD, 6.0, VirtualClock().monotonic_seconds()) is None
    return session, events


def run(work: Coroutine[Any, Any, None]) -> None:
    run_virtual(work)


def test_it_is_in_doubt_five_sixths_of_its_time_out_after_the_last_proof() -> None:
    async def work() -> None:
        session, events = started()
        await asyncio.sleep(3.0)
        sent_seconds = VirtualClock().monotonic_seconds()
        await asyncio.sleep(1.0)
        session.on_news(sent_seconds)  # what was sent at 3 s, and answered at 4 s
        await asyncio.sleep(3.99)
        assert session.is_good
        assert events == []
        await asyncio.sleep(0.02)
        assert not session.is_good
        assert events == [SessionEvent.IN_DOUBT]

    run(work())


def test_an_answer_ends_the_doubt() -> None:
    async def work() -> None:
        session, events = started()
        await asyncio.sleep(5.5)
        session.on_news(VirtualClock().monotonic_seconds())
        assert session.is_good
        assert events == [SessionEvent.IN_DOUBT, SessionEvent.RECONNECTED]

    run(work())


def test_an_answer_to_what_was_sent_long_ago_proves_nothing() -> None:
    async def work() -> None:
        session, events = started()
        await asyncio.sleep(5.5)
        session.on_news(0.4 + VirtualClock().monotonic_seconds() - 5.5)
        assert not session.is_good
        assert events == [SessionEvent.IN_DOUBT]

    run(work())


def test_a_process_that_stood_still_for_longer_than_its_time_out_has_overslept() -> None:
    async def work() -> None:
        session, events = started()
        await asyncio.sleep(1)
        assert not session.has_overslept
        session._last_news_seconds -= 6.0  # it stands still, and no timer runs
        assert session.has_overslept
        assert events == []
        await asyncio.sleep(5)
        assert events == [SessionEvent.IN_DOUBT]
        assert session.has_overslept
        session.on_news(VirtualClock().monotonic_seconds())
        assert not session.has_overslept

    run(work())


def test_who_saw_the_doubt_come_has_not_overslept() -> None:
    async def work() -> None:
        session, events = started()
        await asyncio.sleep(20)
        assert events == [SessionEvent.IN_DOUBT]
        assert not session.has_overslept

    run(work())


def test_the_same_number_is_the_same_session_and_another_is_a_new_one() -> None:
    async def work() -> None:
        session, _ = started()
        now = VirtualClock().monotonic_seconds()
        assert session.begin(5, PASSWORD, 6.0, now) is SessionEvent.RECONNECTED
        session.forget()
        assert not session.is_good
        assert session.begin(6, PASSWORD, 6.0, now) is SessionEvent.NEW_SESSION
        assert session.session_id == "0x6"

    run(work())


def test_a_listener_that_raises_stops_nobody(caplog: pytest.LogCaptureFixture) -> None:
    async def work() -> None:
        session, events = started()

        def fail(_: SessionEvent) -> None:
            raise RuntimeError("on purpose")

        stop = session.listen(fail)
        session.listen(events.append)
        session.tell(SessionEvent.RECONNECTED)
        stop()
        session.tell(SessionEvent.RECONNECTED)
        assert len(events) == 4
        assert caplog.text.count("session listener failed") == 1

    run(work())


def test_a_closed_session_tells_no_doubt() -> None:
    async def work() -> None:
        session, events = started()
        await session.close()
        await session.close()
        await asyncio.sleep(10)
        assert not session.is_good
        assert events == []

    run(work())
