from __future__ import annotations

import pytest

from pulsar_py.common.errors import StorageError
from pulsar_py.common.position import Position
from pulsar_py.managed_ledger.cursors.format import INTERNAL_PREFIX, SEQUENCE_ID_LEDGERS
from pulsar_py.managed_ledger.log.whole_ledger import WholeLedgerWriter
from pulsar_py.server.config import BrokerConfig
from pulsar_py.server.publishing import deduplication, message_deduplication, sequence_id_log
from pulsar_py.server.publishing.message_deduplication import MessageDeduplication
from pulsar_py.server.publishing.sequence_id_log import SequenceIdLog
from pulsar_py.server.topics.persistent import PersistentTopic
from pulsar_py.testing.clock import VirtualClock
from tests.unit.server.topics.rig import Rig, entry, send

CONFIG = BrokerConfig(
    brokerDeduplicationEnabled=True,
    brokerDeduplicationEntriesInterval=1,
    brokerDeduplicationMaxNumberOfProducers=100,
)


@pytest.fixture(autouse=True)
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deduplication, "PROPERTIES_MAX_NAMES", 4)
    monkeypatch.setattr(message_deduplication, "FEW_NAMES", 2)
    monkeypatch.setattr(sequence_id_log, "NAMES_AT_ONCE", 3)


def state(topic: PersistentTopic) -> MessageDeduplication:
    assert topic.deduplication is not None
    return topic.deduplication


def listed(topic: PersistentTopic) -> list[int]:
    text = state(topic).cursor.cursor_properties.get(INTERNAL_PREFIX + SEQUENCE_ID_LEDGERS, "")
    return [int(each) for each in text.split(",") if each]


async def publish(rig: Rig, topic: PersistentTopic, names: range, sequence_id: int) -> None:
    for number in names:
        producer = await rig.producer(topic, rig.cnx(), name=f"p{number}")
        send(producer, sequence_id, entry(sequence_id, producer_name=f"p{number}"))
        await rig.clock.sleep(0.01)
        await producer.close()


async def known(rig: Rig, topic: PersistentTopic) -> dict[str, int]:
    """What a start after a kill would find."""
    await state(topic).cursor.flush()
    found = await MessageDeduplication.open(topic.ledger, topic.settings, rig.clock)
    return found.state.snapshot()


async def stored_ledgers(topic: PersistentTopic) -> set[int]:
    return {each async for some in topic.ledger.ledger_store.list_ledgers() for each in some}


async def test_what_fits_no_properties_is_in_a_ledger(virtual_clock: VirtualClock) -> None:
    async with Rig(virtual_clock, config=CONFIG) as rig:
        topic = await rig.persistent()
        await publish(rig, topic, range(4), 1)
        assert listed(topic) == []
        assert len(state(topic).cursor.properties) == 4
        await publish(rig, topic, range(4, 9), 2)
        await rig.clock.sleep(1)
        assert len(listed(topic)) == 1
        assert state(topic).cursor.properties == {}
        assert state(topic).cursor.mark_delete_position == topic.ledger.last_confirmed_entry
        expected = {f"p{n}": 1 for n in range(4)} | {f"p{n}": 2 for n in range(4, 9)}
        assert await known(rig, topic) == expected


async def test_a_snapshot_writes_what_has_changed(
    virtual_clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Rig(virtual_clock, config=CONFIG) as rig:
        topic = await rig.persistent()
        await publish(rig, topic, range(9), 1)
        await rig.clock.sleep(1)
        written: list[bytes] = []
        append = WholeLedgerWriter.append

        async def noted(self: WholeLedgerWriter, entry: bytes) -> None:
            written.append(entry)
            await append(self, entry)

        monkeypatch.setattr(WholeLedgerWriter, "append", noted)
        await publish(rig, topic, range(3, 4), 5)
        await rig.clock.sleep(1)
        (only,) = written
        assert sequence_id_log._decoded(only, 0) == {"p3": 5}
        assert (await known(rig, topic))["p3"] == 5


async def test_the_list_stays_short_and_former_ledgers_go(virtual_clock: VirtualClock) -> None:
    async with Rig(virtual_clock, config=CONFIG) as rig:
        topic = await rig.persistent()
        ledgers: set[int] = set()
        for sequence_id in range(12):
            await publish(rig, topic, range(9), sequence_id)
            await rig.clock.sleep(1)
            ledgers.update(listed(topic))
            await rig.broker.topics.unload(topic.name)
            topic = await rig.persistent()
        assert len(listed(topic)) <= sequence_id_log.MAX_LEDGERS
        assert await known(rig, topic) == {f"p{n}": 11 for n in range(9)}
        assert not (ledgers - set(listed(topic))) & await stored_ledgers(topic)


async def test_with_few_names_the_properties_are_used_again(virtual_clock: VirtualClock) -> None:
    async with Rig(virtual_clock, config=CONFIG) as rig:
        topic = await rig.persistent()
        await publish(rig, topic, range(9), 1)
        await rig.clock.sleep(1)
        gone = listed(topic)
        state(topic).state.forget_inactive(rig.clock.monotonic_seconds() + 1, 0.0)
        await publish(rig, topic, range(1), 3)
        await rig.clock.sleep(1)
        assert gone
        assert listed(topic) == []
        assert state(topic).cursor.properties == {"p0": 3}
        assert await known(rig, topic) == {"p0": 3}


async def test_a_failed_write_keeps_the_cursor_and_is_repeated(
    virtual_clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Rig(virtual_clock, config=CONFIG) as rig:
        topic = await rig.persistent()
        await publish(rig, topic, range(9), 1)
        await rig.clock.sleep(1)
        before = state(topic).cursor.mark_delete_position

        async def refuse(*_: object) -> None:
            raise StorageError("no room")

        with monkeypatch.context() as broken:
            broken.setattr(SequenceIdLog, "append", refuse)
            broken.setattr(SequenceIdLog, "rewrite", refuse)
            await publish(rig, topic, range(2), 2)
            await rig.clock.sleep(1)
            assert state(topic).cursor.mark_delete_position == before
        await publish(rig, topic, range(2, 3), 2)
        await rig.clock.sleep(1)
        assert state(topic).cursor.mark_delete_position > before
        assert (await known(rig, topic))["p0"] == 2


async def test_the_ledgers_end_with_the_cursor(virtual_clock: VirtualClock) -> None:
    async with Rig(virtual_clock, config=CONFIG) as rig:
        topic = await rig.persistent()
        await publish(rig, topic, range(9), 1)
        await rig.clock.sleep(1)
        position = state(topic).cursor.mark_delete_position
        assert position > Position(-1, -1)
        (ledger_id,) = listed(topic)
        assert ledger_id in await stored_ledgers(topic)
        await state(topic).remove()
        await rig.clock.sleep(1)
        assert ledger_id not in await stored_ledgers(topic)
