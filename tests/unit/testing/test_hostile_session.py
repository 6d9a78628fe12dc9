from __future__ import annotations

import logging
import random

import pytest

from pulsar_py.metadata.store import IN_DOUBT_SHARE, SessionEvent
from pulsar_py.testing.clock import VirtualClock, run_virtual
from pulsar_py.testing.hostile_metadata import HostileMetadata
from pulsar_py.testing.hostile_service import HostileSettings
from pulsar_py.testing.hostile_session import HostileSession

TIMEOUT_SECONDS = 6.0


def test_it_is_good_until_it_has_heard_nothing_for_too_long() -> None:
    run_virtual(grow_silent(VirtualClock()))


async def grow_silent(virtual_clock: VirtualClock) -> None:
    settings = HostileSettings(session_timeout_seconds=TIMEOUT_SECONDS)
    client = HostileMetadata(random.Random(1), virtual_clock, settings).connect("a", virtual_clock)
    session = HostileSession(client, "0x1")
    client.freeze()
    await virtual_clock.sleep(IN_DOUBT_SHARE * TIMEOUT_SECONDS - 0.01)
    assert session.is_good
    await virtual_clock.sleep(0.02)
    assert not session.is_good
    session.last_news_seconds = virtual_clock.monotonic_seconds()
    assert session.is_good
    session.is_open = False
    assert not session.is_good
    await client.close()


def test_one_that_stood_still_for_its_whole_time_has_overslept_until_there_is_news() -> None:
    run_virtual(oversleep(VirtualClock()))


async def oversleep(virtual_clock: VirtualClock) -> None:
    settings = HostileSettings(session_timeout_seconds=TIMEOUT_SECONDS)
    client = HostileMetadata(random.Random(1), virtual_clock, settings).connect("a", virtual_clock)
    session = HostileSession(client, "0x1")
    client.freeze()
    await virtual_clock.sleep(TIMEOUT_SECONDS - 0.01)
    assert not session.has_overslept
    await virtual_clock.sleep(0.02)
    assert session.has_overslept, "nobody told of a doubt"
    session.tell(SessionEvent.IN_DOUBT)
    session.tell(SessionEvent.CONNECTION_LOST)
    assert session.has_overslept
    session.last_news_seconds = virtual_clock.monotonic_seconds()
    session.tell(SessionEvent.RECONNECTED)
    assert not session.has_overslept
    session.tell(SessionEvent.IN_DOUBT)
    await virtual_clock.sleep(2 * TIMEOUT_SECONDS)
    assert not session.has_overslept, "it saw the doubt come"
    await client.close()


def test_a_listener_that_raises_stops_nobody(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)
    assert run_virtual(tell_two(VirtualClock())) == [SessionEvent.IN_DOUBT]
    assert "session listener failed" in caplog.text


async def tell_two(virtual_clock: VirtualClock) -> list[SessionEvent]:
    client = HostileMetadata(random.Random(1), virtual_clock).connect("a", virtual_clock)
    session = HostileSession(client, "0x1")
    heard: list[SessionEvent] = []

    def fail(_: SessionEvent) -> None:
        raise RuntimeError("on purpose")

    session.listen(fail)
    stop = session.listen(heard.append)
    session.tell(SessionEvent.IN_DOUBT)
    stop()
    stop()
    session.tell(SessionEvent.RECONNECTED)
    await client.close()
    return heard
