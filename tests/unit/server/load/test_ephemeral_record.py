from __future__ import annotations

import random

import pytest

from pulsar_py.server.load.ephemeral_record import EphemeralRecord
from pulsar_py.testing.clock import VirtualClock
from pulsar_py.testing.hostile_metadata import HostileClient, HostileMetadata
from pulsar_py.testing.hostile_service import HostileSettings

PATH = "/a/record"
SESSION_SECONDS = 6.0


class Holder:
    def __init__(self, client: HostileClient, clock: VirtualClock, name: bytes) -> None:
        self.client = client
        self.name = name
        self.changes_count = 0
        self.record = EphemeralRecord(
            client, PATH, clock, may_take=lambda value: value == name, on_change=self._on_change
        )

    def _on_change(self) -> None:
        self.changes_count += 1

    async def start(self) -> None:
        await self.record.start(self.name)


class World:
    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        settings = HostileSettings(session_timeout_seconds=SESSION_SECONDS, lag_seconds=0.1)
        self.service = HostileMetadata(random.Random(1), clock, settings)

    def holder(self, name: bytes) -> Holder:
        return Holder(self.service.connect(name.decode(), self.clock), self.clock, name)


@pytest.fixture
def world(virtual_clock: VirtualClock) -> World:
    return World(virtual_clock)


async def test_one_holds_it_and_the_other_knows_who(world: World) -> None:
    one, two = world.holder(b"one"), world.holder(b"two")
    await one.start()
    await two.start()
    assert one.record.is_held
    assert not two.record.is_held
    assert two.record.foreign == b"one"
    await one.record.close()
    await world.clock.sleep(1)
    assert two.record.is_held
    assert two.record.foreign is None
    await two.record.close()


async def test_it_is_got_when_the_holder_s_session_expires(world: World) -> None:
    one, two = world.holder(b"one"), world.holder(b"two")
    await one.start()
    await two.start()
    one.client.freeze()
    await world.clock.sleep(SESSION_SECONDS * 2)
    assert two.record.is_held
    assert not one.record.is_held  # by its own clock, frozen as it is
    one.client.thaw()
    await world.clock.sleep(2)
    assert two.record.is_held
    assert not one.record.is_held
    assert one.record.foreign == b"two"
    for each in (one, two):
        await each.record.close()


async def test_a_former_session_s_is_taken_at_once(world: World) -> None:
    one = world.holder(b"one")
    await one.start()
    one.client.freeze()
    again = world.holder(b"one")
    await again.start()
    assert again.record.is_held
    await again.record.close()
    one.client.thaw()
    await one.record.close()


async def test_it_is_there_again_after_the_session_expired(world: World) -> None:
    one = world.holder(b"one")
    await one.start()
    one.client.expire()
    await world.clock.sleep(SESSION_SECONDS * 3)
    assert one.record.is_held
    stored = await one.client.get(PATH)
    assert stored is not None
    assert stored.owner == (await one.client.open_session()).session_id
    await one.record.close()


async def test_a_new_value_is_stored(world: World) -> None:
    one = world.holder(b"one")
    await one.start()
    one.record.set_value(b"newer")
    await world.clock.sleep(1)
    stored = await one.client.get(PATH)
    assert stored is not None
    assert stored.value == b"newer"
    await one.record.give_up()
    await one.client.sync(PATH)
    assert await one.client.get(PATH) is None
    assert not one.record.is_held
    await one.record.close()
