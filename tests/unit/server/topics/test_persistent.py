from __future__ import annotations

import asyncio

import pytest

from pulsar_py.common.errors import (
    DiskFullError,
    NamingError,
    NotAllowedError,
    StorageError,
    StoreBusyError,
    SubscriptionNotFoundError,
    TopicBusyError,
    TopicFencedError,
    TopicTerminatedError,
)
from pulsar_py.common.loops.tasks import TaskOwner
from pulsar_py.common.position import EARLIEST, LATEST, Position
from pulsar_py.managed_ledger.log.ledger_format import ledger_path
from pulsar_py.server.config import BrokerConfig
from pulsar_py.server.dispatch.subscribe_request import SubscriptionType
from pulsar_py.server.topics.topic_state import TopicState
from pulsar_py.testing.clock import VirtualClock
from pulsar_py.testing.ledger_store import SimulatedLedgerStore
from pulsar_py.wire.payload import parse_broker_entry_metadata
from tests.unit.server.topics.rig import Rig, entry, send, subscribe_request


async def test_receipts_come_in_order_with_consecutive_entries(rig: Rig) -> None:
    topic, cnx = await rig.persistent(), rig.cnx()
    producer = await rig.producer(topic, cnx)
    for sequence_id in range(5):
        send(producer, sequence_id)
    await producer.close()
    assert cnx.take() == [f"receipt {n} at {n}" for n in range(5)]
    assert cnx.in_flight.entries_count == 0
    assert rig.broker.publish_buffer.bytes_count == 0


async def test_what_was_published_is_delivered(rig: Rig) -> None:
    topic, cnx = await rig.persistent(), rig.cnx()
    consumer = await topic.subscribe(subscribe_request(cnx, starts_at_earliest=True))
    producer = await rig.producer(topic, rig.cnx())
    consumer.flow(10)
    send(producer, 0)
    send(producer, 1)
    await producer.close()
    await rig.clock.sleep(0.01)
    assert [line for line in cnx.take() if line.startswith("message")] == ["message 0", "message 1"]


async def test_a_topic_comes_back_after_an_unload(rig: Rig) -> None:
    topic, cnx = await rig.persistent(), rig.cnx()
    await topic.subscribe(subscribe_request(cnx, starts_at_earliest=True))
    producer = await rig.producer(topic, cnx)
    send(producer, 0)
    await producer.close()
    await rig.broker.topics.unload(topic.name)
    assert cnx.closed_consumers == [1]

    again = await rig.persistent()

    assert again is not topic
    assert list(again.subscriptions) == ["sub"]
    assert again.subscriptions["sub"].stats().backlog_entries == 1
    assert again.last_message_position().entry_id == 0


async def test_unloading_closes_producers_and_drops_late_sends(rig: Rig) -> None:
    topic, cnx = await rig.persistent(), rig.cnx()
    producer = await rig.producer(topic, cnx, producer_id=7)
    send(producer, 0)
    await rig.broker.topics.unload(topic.name)
    assert cnx.closed_producers == [7]
    assert cnx.take() == ["receipt 0 at 0"]
    send(producer, 1)
    await rig.clock.sleep(1)
    assert cnx.take() == []


async def test_terminate_closes_producers_and_takes_no_new_ones(rig: Rig) -> None:
    topic, cnx = await rig.persistent(), rig.cnx()
    producer = await rig.producer(topic, cnx, producer_id=3)
    send(producer, 0)
    await rig.clock.sleep(0.01)
    cnx.take()

    position = await topic.terminate()

    assert position.entry_id == 0
    assert await topic.terminate() == position
    assert cnx.closed_producers == [3]
    send(producer, 1)
    with pytest.raises(TopicTerminatedError):
        await rig.producer(topic, cnx)
    assert cnx.take() == []


async def test_delete_refuses_while_somebody_is_connected(rig: Rig) -> None:
    topic, cnx = await rig.persistent(), rig.cnx()
    await rig.producer(topic, cnx, producer_id=3)
    with pytest.raises(TopicBusyError):
        await rig.broker.topics.delete(topic.name)
    await rig.broker.topics.delete(topic.name, force=True)
    assert cnx.closed_producers == [3]
    assert not await rig.broker.topics.exists(topic.name)


async def test_an_empty_topic_has_no_last_message(rig: Rig) -> None:
    topic = await rig.persistent()
    assert topic.last_message_position() == EARLIEST


async def test_subscription_names_are_checked(rig: Rig) -> None:
    topic, cnx = await rig.persistent(), rig.cnx()
    for name in ("", "pulsar.dedup", "pulsar.repl.west"):
        with pytest.raises(NamingError):
            await topic.subscribe(subscribe_request(cnx, name))


async def test_a_reader_and_a_durable_subscription_can_not_share_a_name(rig: Rig) -> None:
    topic, cnx = await rig.persistent(), rig.cnx()
    await topic.subscribe(subscribe_request(cnx))
    with pytest.raises(NotAllowedError, match="Durable subscription"):
        await topic.subscribe(subscribe_request(cnx, is_durable=False, consumer_id=2))


async def test_a_reader_starts_at_its_position(rig: Rig) -> None:
    topic, cnx = await rig.persistent(), rig.cnx()
    producer = await rig.producer(topic, rig.cnx())
    for n in range(4):
        send(producer, n)
    await producer.close()
    ledger_id = topic.last_message_position().ledger_id
    consumer = await topic.subscribe(
        subscribe_request(cnx, is_durable=False, start_position=Position(ledger_id, 2))
    )
    consumer.flow(10)
    await rig.clock.sleep(0.01)
    assert [line for line in cnx.take() if "message" in line] == ["message 2", "message 3"]


@pytest.mark.parametrize("starts_at_earliest", [True, False])
@pytest.mark.parametrize(
    ("ledgers_later", "entry_id", "is_beyond"),
    [(0, 3, False), (0, 7, True), (9, 0, True), (None, 0, True)],
)
async def test_a_reader_beyond_the_end_starts_at_its_initial_position(
    rig: Rig,
    starts_at_earliest: bool,  # noqa: FBT001
    ledgers_later: int | None,
    entry_id: int,
    is_beyond: bool,  # noqa: FBT001
) -> None:
    """As recorded; the entry right behind the last one, and only that, is not beyond the end."""
    topic, cnx = await rig.persistent(), rig.cnx()
    producer = await rig.producer(topic, rig.cnx())
    for n in range(3):
        send(producer, n)
    await producer.close()
    last = topic.last_message_position()
    start = LATEST if ledgers_later is None else Position(last.ledger_id + ledgers_later, entry_id)
    consumer = await topic.subscribe(
        subscribe_request(
            cnx, is_durable=False, start_position=start, starts_at_earliest=starts_at_earliest
        )
    )
    consumer.flow(10)
    await rig.clock.sleep(0.01)
    messages = [line for line in cnx.take() if "message" in line]
    assert messages == [f"message {n}" for n in range(3) if is_beyond and starts_at_earliest]


async def test_subscriptions_go_on_when_the_max_read_position_moves(rig: Rig) -> None:
    """One of each type; moving it back wakes nobody, and what was sent stays sent."""
    topic = await rig.persistent()
    topic.move_max_read_position(EARLIEST)
    cnxs = {}
    for kind in SubscriptionType:
        cnxs[kind] = rig.cnx()
        request = subscribe_request(cnxs[kind], kind.name, kind, starts_at_earliest=True)
        (await topic.subscribe(request)).flow(10)
    await rig.clock.sleep(2)
    producer = await rig.producer(topic, rig.cnx())
    for n in range(4):
        send(producer, n)
    await rig.clock.sleep(0.01)

    def came() -> list[list[str]]:
        taken = [cnx.take() for cnx in cnxs.values()]
        return [[line for line in lines if "message" in line] for lines in taken]

    last = topic.last_message_position()
    assert came() == [[]] * 4
    topic.move_max_read_position(Position(last.ledger_id, 1))
    await rig.clock.sleep(0.01)
    assert came() == [["message 0", "message 1"]] * 4
    topic.move_max_read_position(Position(last.ledger_id, 0))
    send(producer, 4)
    await rig.clock.sleep(0.01)
    assert came() == [[]] * 4
    topic.move_max_read_position(LATEST)
    await rig.clock.sleep(0.01)
    assert came() == [["message 2", "message 3", "message 4"]] * 4
    send(producer, 5)
    await rig.clock.sleep(0.01)
    assert came() == [["message 5"]] * 4


async def test_the_last_readable_position_is_not_behind_the_max_read_position(rig: Rig) -> None:
    topic = await rig.persistent()
    assert topic.last_readable_position() == EARLIEST
    producer = await rig.producer(topic, rig.cnx())
    for n in range(3):
        send(producer, n)
    await producer.close()
    last = topic.last_message_position()
    assert topic.last_readable_position() == last
    for entry_id in (0, 1, 2):
        topic.move_max_read_position(Position(last.ledger_id, entry_id))
        assert topic.last_readable_position() == Position(last.ledger_id, entry_id)
    for nothing in (EARLIEST, Position(last.ledger_id, -1)):
        topic.move_max_read_position(nothing)
        assert topic.last_readable_position() == EARLIEST


@pytest.mark.parametrize("is_durable", [True, False])
async def test_rolling_back_starts_a_new_subscription_in_the_past(
    rig: Rig,
    is_durable: bool,  # noqa: FBT001
) -> None:
    topic, cnx = await rig.persistent(), rig.cnx()
    producer = await rig.producer(topic, rig.cnx())
    now = rig.clock.wall_time_millis()
    for n, age in enumerate((7_200_000, 1_800_000, 0)):
        send(producer, n, entry(n, publish_time=now - age))
    await producer.close()
    consumer = await topic.subscribe(
        subscribe_request(cnx, start_rollback_seconds=3600, is_durable=is_durable)
    )
    consumer.flow(10)
    await rig.clock.sleep(0.01)
    assert [line for line in cnx.take() if "message" in line] == ["message 1", "message 2"]


async def test_finding_by_publish_time(rig: Rig) -> None:
    topic = await rig.persistent()
    producer = await rig.producer(topic, rig.cnx())
    for n in range(5):
        send(producer, n, entry(n, publish_time=1000 + n * 10))
    await producer.close()
    assert (await topic.find_by_publish_time(1020)).entry_id == 2
    assert (await topic.find_by_publish_time(1021)).entry_id == 3
    assert (await topic.find_by_publish_time(0)).entry_id == 0
    assert (await topic.find_by_publish_time(9999)).entry_id == 5


async def test_deleting_an_unknown_subscription(rig: Rig) -> None:
    topic = await rig.persistent()
    with pytest.raises(SubscriptionNotFoundError):
        await topic.delete_subscription("nobody")


async def test_stats_count_what_came_in(rig: Rig) -> None:
    topic = await rig.persistent()
    producer = await rig.producer(topic, rig.cnx())
    send(producer, 0, messages_count=3)
    send(producer, 3)
    await producer.close()
    stats = topic.stats()
    assert stats.messages_in_count == 4
    assert stats.bytes_in_count == 2 * len(entry(0))
    assert stats.producers == ()
    assert stats.storage_bytes == 2 * len(entry(0))
    assert topic.internal_stats().entries_count == 2


async def test_a_failed_write_fences_until_everything_is_decided(
    virtual_clock: VirtualClock,
) -> None:
    store = SimulatedLedgerStore()
    async with Rig(virtual_clock, ledgers=store) as rig:
        topic, cnx = await rig.persistent(), rig.cnx()
        producer = await rig.producer(topic, cnx, producer_id=6)
        send(producer, 0)
        await rig.clock.sleep(0.01)
        assert cnx.take() == ["receipt 0 at 0"]
        store.is_holding = True
        send(producer, 1)
        store.create_error = StorageError("no ledgers today")
        store.fail_writers(StorageError("broken"))
        await rig.clock.sleep(0.01)

        assert "error 1 PersistenceError" in cnx.take()
        assert cnx.closed_producers == [6]
        assert cnx.in_flight.entries_count == 0
        assert topic.state is TopicState.OPEN

        store.create_error, store.is_holding = None, False
        await rig.clock.sleep(30)
        again = await rig.producer(topic, cnx)
        send(again, 1)
        await again.close()
        assert cnx.take() == ["receipt 1 at 0"]


async def test_a_fenced_topic_takes_no_producers(rig: Rig) -> None:
    topic, cnx = await rig.persistent(), rig.cnx()
    topic.state = TopicState.FENCED
    with pytest.raises(TopicFencedError):
        await rig.producer(topic, cnx)
    topic.state = TopicState.OPEN


async def test_a_full_disk_is_answered_and_over_when_there_is_room(
    virtual_clock: VirtualClock,
) -> None:
    store = SimulatedLedgerStore()
    async with Rig(virtual_clock, ledgers=store) as rig:
        topic, cnx = await rig.persistent(), rig.cnx()
        producer = await rig.producer(topic, cnx)
        send(producer, 0)
        await rig.clock.sleep(0.01)
        store.append_error = DiskFullError("full")
        store.create_error = DiskFullError("full")
        send(producer, 1)
        await rig.clock.sleep(0.01)
        assert cnx.take() == ["receipt 0 at 0", "error 1 PersistenceError"]
        store.append_error = store.create_error = None
        await rig.clock.sleep(30)
        again = await rig.producer(topic, cnx)
        send(again, 1)
        await again.close()
        [receipt] = cnx.take()
        assert receipt.startswith("receipt 1")


async def test_deduplication_takes_again_what_a_failure_did_not_store(
    virtual_clock: VirtualClock,
) -> None:
    store = SimulatedLedgerStore()
    config = BrokerConfig(brokerDeduplicationEnabled=True)
    async with Rig(virtual_clock, ledgers=store, config=config) as rig:
        topic, cnx = await rig.persistent(), rig.cnx()
        producer = await rig.producer(topic, cnx)
        send(producer, 0)
        await rig.clock.sleep(0.01)
        store.is_holding = True
        send(producer, 1)
        store.create_error = StorageError("no ledgers today")
        store.fail_writers(StorageError("broken"))
        await rig.clock.sleep(0.01)
        store.create_error, store.is_holding = None, False
        cnx.take()
        await rig.clock.sleep(30)
        grant = await rig.grant(topic, cnx)
        assert grant.last_sequence_id == 0
        send(grant.producer, 1)
        await grant.producer.close()
        assert cnx.take() == ["receipt 1 at 0"]


async def test_another_owner_of_the_ledger_ends_the_topic_here(
    virtual_clock: VirtualClock,
) -> None:
    store = SimulatedLedgerStore()
    async with Rig(virtual_clock, ledgers=store) as rig:
        topic, cnx = await rig.persistent(), rig.cnx()
        producer = await rig.producer(topic, cnx, producer_id=2)
        send(producer, 0)
        await rig.clock.sleep(0.01)
        cnx.take()
        ledger_id = topic.last_message_position().ledger_id
        await store.recover(ledger_id)
        metadata = rig.broker.resources.local
        path = ledger_path(topic.name.managed_ledger_name)
        stored = await metadata.get(path)
        assert stored is not None
        await metadata.put(path, stored.value)  # as whoever recovers it for himself does
        send(producer, 1)
        await rig.clock.sleep(0.1)
        assert not [each for each in cnx.take() if each.startswith("receipt")]
        assert cnx.closed_producers == [2]
        assert rig.broker.topics.loaded(topic.name) is None


async def test_a_repairer_that_fences_the_ledger_costs_a_delay_only(
    virtual_clock: VirtualClock,
) -> None:
    store = SimulatedLedgerStore()
    async with Rig(virtual_clock, ledgers=store) as rig:
        topic, cnx = await rig.persistent(), rig.cnx()
        producer = await rig.producer(topic, cnx, producer_id=2)
        send(producer, 0)
        await rig.clock.sleep(0.01)
        cnx.take()
        await store.recover(topic.last_message_position().ledger_id)
        send(producer, 1)
        await rig.clock.sleep(0.1)
        assert cnx.take() == ["receipt 1 at 0"]
        assert not cnx.closed_producers


async def test_the_index_goes_on_after_an_unload(virtual_clock: VirtualClock) -> None:
    config = BrokerConfig(
        brokerEntryMetadataInterceptors=frozenset({"x.AppendIndexMetadataInterceptor"})
    )
    async with Rig(virtual_clock, config=config) as rig:
        for expected in (2, 5):
            topic = await rig.persistent()
            producer = await rig.producer(topic, rig.cnx())
            send(producer, 0, messages_count=3)
            await producer.close()
            stored = await topic.ledger.read_entry(topic.last_message_position())
            stamp = parse_broker_entry_metadata(stored.data)
            assert stamp is not None
            assert stamp.index == expected
            await rig.broker.topics.unload(topic.name)


INDEXED = BrokerConfig(
    brokerEntryMetadataInterceptors=frozenset({"x.AppendIndexMetadataInterceptor"})
)


async def test_the_index_goes_on_after_a_kill_when_all_messages_are_deleted(
    virtual_clock: VirtualClock,
) -> None:
    async with Rig(virtual_clock, config=INDEXED) as rig:
        topic = await rig.persistent()
        producer = await rig.producer(topic, rig.cnx())
        send(producer, 0, messages_count=3)
        await rig.clock.sleep(0.01)
        await topic.truncate()
        assert topic.ledger.properties["index"] == "2"
        assert not topic.ledger.contains(topic.ledger.last_confirmed_entry)
        topic.lose()  # closed without writing anything
        await rig.clock.sleep(0.01)
        again = await rig.persistent()
        assert again is not topic
        assert again.stats().last_message_index == 2


async def test_an_index_that_another_broker_stored_goes_on(virtual_clock: VirtualClock) -> None:
    for name in ("index", "pulsar_py.last-message-index"):
        async with Rig(virtual_clock, config=INDEXED) as rig:
            topic = await rig.persistent()
            assert topic.stats().last_message_index == -1
            await topic.ledger.set_property(name, "41")
            topic.lose()
            await rig.clock.sleep(0.01)
            again = await rig.persistent()
            assert again.stats().last_message_index == 41


@pytest.mark.parametrize("end", ["close", "delete"])
async def test_all_consumers_are_gone_before_the_first_subscription_is_written(
    rig: Rig, end: str
) -> None:
    topic, cnx = await rig.persistent(), rig.cnx()
    for number in range(3):
        request = subscribe_request(cnx, f"sub-{number}", consumer_id=number)
        await topic.subscribe(request)
    tasks = TaskOwner("test")
    options = {"force": True} if end == "delete" else {}
    ending = tasks.spawn(getattr(topic, end)(**options), end)
    await asyncio.sleep(0)
    assert not ending.done()
    assert cnx.closed_consumers == [0, 1, 2]
    await ending


async def test_a_failure_is_over_when_those_who_are_gone_are_decided_too(
    virtual_clock: VirtualClock,
) -> None:
    store = SimulatedLedgerStore()
    config = BrokerConfig(brokerDeduplicationEnabled=True)
    async with Rig(virtual_clock, ledgers=store, config=config) as rig:
        topic, cnx, other = await rig.persistent(), rig.cnx(), rig.cnx()
        producer = await rig.producer(topic, cnx)
        await rig.clock.sleep(0.01)
        store.is_holding = True
        send(producer, 0)
        producer.on_connection_lost()
        store.append_error = StoreBusyError("64 MB wait already")
        send(await rig.producer(topic, other), 1)
        store.append_error = None
        await rig.clock.sleep(0.01)
        assert topic.state is TopicState.FENCED, "what the first one sent may yet be stored"
        store.release()
        await rig.clock.sleep(0.01)
        assert topic.state is TopicState.OPEN
        assert (await rig.grant(topic, rig.cnx())).last_sequence_id == 0


async def test_messages_of_the_broker_itself_are_stamped_and_counted(
    virtual_clock: VirtualClock,
) -> None:
    async with Rig(virtual_clock, config=INDEXED) as rig:
        topic = await rig.persistent()
        position = await topic.append_own(entry())
        stored = await topic.ledger.read_entry(position)
        stamp = parse_broker_entry_metadata(stored.data)
        assert stamp is not None
        assert stamp.index == 0
        assert topic.last_published_millis == virtual_clock.wall_time_millis()
        await rig.broker.topics.unload(topic.name)
        with pytest.raises(TopicFencedError, match="is closing"):
            await topic.append_own(entry())
