from __future__ import annotations

from typing import Any

import pytest

from pulsar_py.common.errors import (
    ManagedLedgerClosedError,
    ManagedLedgerFencedError,
    ManagedLedgerTerminatedError,
    NotAllowedError,
    PulsarError,
    ServiceMetadataError,
)
from pulsar_py.proto.PulsarApi_pb2 import ServerError
from pulsar_py.server.policies.topic_settings import TopicSettings
from pulsar_py.server.publishing.producer import CHUNK, MARKER, MESSAGE, ProducerState, Send
from pulsar_py.server.topics.persistent import PersistentTopic
from tests.unit.server.topics.rig import NAMESPACE, Rig, entry, send


async def test_a_wrong_checksum_is_refused_and_the_next_message_goes_on(rig: Rig) -> None:
    topic, cnx = await rig.persistent(), rig.cnx()
    producer = await rig.producer(topic, cnx)
    good = entry(0)
    send(producer, 0, good[:2] + bytes(4) + good[6:])
    send(producer, 1)
    await producer.close()
    assert cnx.take() == ["error 0 ChecksumError", "receipt 1 at 0"]


async def test_a_message_without_checksum_is_stored(rig: Rig) -> None:
    topic, cnx = await rig.persistent(), rig.cnx()
    producer = await rig.producer(topic, cnx)
    send(producer, 0, entry(0)[6:])
    await producer.close()
    assert cnx.take() == ["receipt 0 at 0"]


def run_of(*datas: bytes, first: int = 0, **fields: Any) -> list[Send]:
    """SENDs that come one behind the other."""
    return [
        (
            first + place,
            fields.get("highest"),
            fields.get("messages_count", 1),
            fields.get("is_chunk", False),
            fields.get("is_marker", False),
            data,
        )
        for place, data in enumerate(datas)
    ]


async def test_a_run_is_stored_and_counted_as_its_sends(rig: Rig) -> None:
    topic, cnx = await rig.persistent(), rig.cnx()
    producer = await rig.producer(topic, cnx)
    datas = [entry(number) for number in range(3)]
    producer.publish_run(run_of(*datas, messages_count=10))
    producer.publish_run(run_of(entry(3), entry(4), first=3, is_chunk=True))
    assert producer.pending_count == cnx.in_flight.entries_count == 5
    assert cnx.in_flight.buffer.bytes_count == producer.bytes_in_count
    assert (producer.messages_in_count, producer.chunks_count, producer.is_chunked) == (32, 2, True)
    await producer.close()
    assert cnx.take() == [f"receipt {number} at {number}" for number in range(5)]
    assert cnx.in_flight.entries_count == cnx.in_flight.buffer.bytes_count == 0


async def test_plain_sends_are_stored_and_counted_as_each(rig: Rig) -> None:
    topic, cnx = await rig.persistent(), rig.cnx()
    producer = await rig.producer(topic, cnx)
    producer.publish_plain([5, 6, 9], [entry(number) for number in range(3)])
    assert producer.pending_count == cnx.in_flight.entries_count == producer.messages_in_count == 3
    assert cnx.in_flight.buffer.bytes_count == producer.bytes_in_count
    await producer.close()
    assert cnx.take() == ["receipt 5 at 0", "receipt 6 at 1", "receipt 9 at 2"]
    assert cnx.in_flight.entries_count == cnx.in_flight.buffer.bytes_count == 0


async def test_plain_sends_that_need_a_closer_look_go_one_by_one(rig: Rig) -> None:
    topic, cnx = await rig.persistent(), rig.cnx()
    producer = await rig.producer(topic, cnx)
    good = entry(0)
    producer.publish_plain([0, 1, 2], [good, good[:2] + bytes(4) + good[6:], good])
    cnx.in_flight.max_entries = 5
    producer.publish_plain([3, 4, 5], [good] * 3)
    assert cnx.in_flight.is_paused
    await producer.close()
    answers = ["error 1 ChecksumError", "receipt 0 at 0", "receipt 2 at 1"]
    assert cnx.take() == [*answers, *(f"receipt {each} at {each - 1}" for each in (3, 4, 5))]
    producer.publish_plain([6], [good])
    assert cnx.take() == ["error 6 PersistenceError"]


async def test_plain_sends_beyond_what_a_run_takes_go_on_in_the_next_ledger(rig: Rig) -> None:
    topic, cnx = await rig.persistent(), rig.cnx()
    producer = await rig.producer(topic, cnx)
    append_run = topic.ledger.append_run
    producer.set_append(
        topic.ledger.append, lambda datas, contexts: append_run(datas[:2], contexts[:2])
    )
    producer.publish_plain([0, 1, 2, 3], [entry(number) for number in range(4)])
    assert producer.pending_count == producer.messages_in_count == 4
    assert producer.bytes_in_count == sum(len(entry(number)) for number in range(4))
    await producer.close()
    assert cnx.take() == [f"receipt {number} at {number}" for number in range(4)]


async def test_a_wrong_checksum_in_a_run_is_refused_alone(rig: Rig) -> None:
    topic, cnx = await rig.persistent(), rig.cnx()
    producer = await rig.producer(topic, cnx)
    good = entry(0)
    producer.publish_run(run_of(good, good[:2] + bytes(4) + good[6:], good))
    await producer.close()
    assert cnx.take() == ["error 1 ChecksumError", "receipt 0 at 0", "receipt 2 at 1"]


async def test_a_run_to_a_closed_producer_is_refused_send_by_send(rig: Rig) -> None:
    topic, cnx = await rig.persistent(), rig.cnx()
    producer = await rig.producer(topic, cnx)
    await producer.close()
    producer.publish_run(run_of(entry(0), entry(1)))
    assert cnx.take() == ["error 0 PersistenceError", "error 1 PersistenceError"]


async def test_a_run_of_a_topic_that_looks_at_messages_goes_one_by_one(rig: Rig) -> None:
    await rig.broker.resources.namespaces.update(
        NAMESPACE, lambda old: old.replace(is_deduplication_enabled=True)
    )
    topic, cnx = await rig.persistent(), rig.cnx()
    producer = await rig.producer(topic, cnx)
    producer.publish_run(run_of(entry(0), entry(1)))
    await rig.clock.sleep(0.01)
    producer.publish_run(run_of(entry(1), entry(2), first=1))
    await producer.close()
    assert cnx.take() == [
        "receipt 0 at 0",
        "receipt 1 at 1",
        "receipt 1 at none",
        "receipt 2 at 2",
    ]


async def test_a_run_beyond_the_limit_pauses_reading(rig: Rig) -> None:
    topic, cnx = await rig.persistent(), rig.cnx()
    producer = await rig.producer(topic, cnx)
    cnx.in_flight.max_entries = 3
    producer.publish_run(run_of(*(entry(number) for number in range(4))))
    assert cnx.in_flight.is_paused
    await producer.close()
    assert not cnx.in_flight.is_paused


async def test_sends_after_closing_are_refused(rig: Rig) -> None:
    topic, cnx = await rig.persistent(), rig.cnx()
    producer = await rig.producer(topic, cnx)
    await producer.close()
    send(producer, 0)
    assert cnx.take() == ["error 0 PersistenceError"]
    assert producer.state is ProducerState.CLOSED


async def test_closing_waits_for_what_is_under_way(rig: Rig) -> None:
    topic, cnx = await rig.persistent(), rig.cnx()
    producer = await rig.producer(topic, cnx)
    send(producer, 0)
    assert cnx.take() == []
    assert producer.pending_count == 1
    await producer.close()
    assert cnx.take() == ["receipt 0 at 0"]
    assert topic.producers == {}


async def test_a_lost_connection_leaves_at_once(rig: Rig) -> None:
    topic, cnx = await rig.persistent(), rig.cnx()
    producer = await rig.producer(topic, cnx)
    send(producer, 0)
    cnx.is_connected = False
    producer.on_connection_lost()
    assert topic.producers == {}
    await rig.clock.sleep(0.1)
    assert cnx.in_flight.entries_count == 0
    assert topic.last_message_position().entry_id == 0


@pytest.mark.parametrize(
    ("error", "answer"),
    [
        (ManagedLedgerTerminatedError("t"), ["error 4 TopicTerminatedError"]),
        (ManagedLedgerFencedError("f"), ["error 4 PersistenceError"]),
        (ManagedLedgerClosedError("c"), []),
        (NotAllowedError("n"), ["error 4 NotAllowedError"]),
        (ServiceMetadataError("m"), ["error 4 MetadataError"]),
    ],
)
async def test_errors_have_the_codes_that_clients_know(
    rig: Rig, error: PulsarError, answer: list[str]
) -> None:
    topic, cnx = await rig.persistent(), rig.cnx()
    producer = await rig.producer(topic, cnx)

    def refuse(data: bytes, context: Any) -> None:
        raise error

    producer.set_append(refuse)
    send(producer, 2, highest=4)
    assert cnx.take() == answer
    assert cnx.in_flight.entries_count == 0
    assert producer.pending_count == 0


async def test_the_context_says_what_a_send_is(rig: Rig) -> None:
    topic, cnx = await rig.persistent(), rig.cnx()
    producer = await rig.producer(topic, cnx)
    contexts: list[Any] = []
    producer.set_append(lambda _, context: contexts.append(context))
    send(producer, 1)
    send(producer, 2, is_chunk=True)
    send(producer, 3, is_marker=True)
    send(producer, 4, highest=9)
    send(producer, 5, highest=3)
    assert [(c[1], c[2], c[5]) for c in contexts] == [
        (1, None, MESSAGE),
        (2, None, CHUNK),
        (3, None, MARKER),
        (4, 9, MESSAGE),
        (5, None, MESSAGE),
    ]
    producer.count_out(5, sum(c[3] for c in contexts))


async def test_reading_pauses_while_too_much_is_under_way(rig: Rig) -> None:
    topic, cnx = await rig.persistent(), rig.cnx()
    cnx.in_flight.max_entries, cnx.in_flight.resume_entries = 2, 1
    producer = await rig.producer(topic, cnx)
    send(producer, 0)
    send(producer, 1)
    assert cnx.pauses == ["pause"]
    await producer.close()
    assert cnx.pauses == ["pause", "resume"]


async def test_rates_are_those_of_the_last_window(rig: Rig) -> None:
    topic, cnx = await rig.persistent(), rig.cnx()
    producer = await rig.producer(topic, cnx, metadata={"a": "b"})
    for n in range(6):
        send(producer, n)
    topic.roll_rates(2.0)
    stats = producer.stats()
    assert stats.message_in_rate == 3.0
    assert stats.average_message_bytes == len(entry(0))
    assert stats.metadata == {"a": "b"}
    topic.roll_rates(2.0)
    assert producer.stats().message_in_rate == 0.0


TOO_LARGE = entry(payload=b"x" * 1000)


async def small_topic(rig: Rig) -> PersistentTopic:
    """A topic that takes no message of 500 bytes."""
    topic = await rig.persistent()
    await topic.apply_settings(TopicSettings(max_message_bytes=500))
    return topic


async def test_a_refusal_comes_behind_the_receipts_before_it(rig: Rig) -> None:
    topic, cnx = await small_topic(rig), rig.cnx()
    producer = await rig.producer(topic, cnx)
    send(producer, 0)
    send(producer, 1)
    for number in (2, 3, 6):
        send(producer, number, TOO_LARGE)
        send(producer, number + 2)  # waits, as the refusal does
    assert cnx.take() == []
    assert (producer.pending_count, cnx.in_flight.entries_count) == (2, 7)
    await rig.clock.sleep(0.1)
    assert cnx.take() == [
        "receipt 0 at 0",
        "receipt 1 at 1",
        "error 2 NotAllowedError",
        "receipt 4 at 2",
        "error 3 NotAllowedError",
        "receipt 5 at 3",
        "error 6 NotAllowedError",
        "receipt 8 at 4",
    ]
    assert cnx.in_flight.entries_count == cnx.in_flight.buffer.bytes_count == 0
    assert cnx.in_flight.held_bytes == 0
    send(producer, 9, TOO_LARGE)  # with nothing before it, at once
    assert cnx.take() == ["error 9 NotAllowedError"]


async def test_what_waits_behind_a_refusal_pauses_reading(rig: Rig) -> None:
    topic, cnx = await small_topic(rig), rig.cnx()
    producer = await rig.producer(topic, cnx)
    cnx.in_flight.max_entries, cnx.in_flight.resume_entries = 3, 1
    send(producer, 0)
    send(producer, 1, TOO_LARGE)
    send(producer, 2)
    assert cnx.pauses == []
    send(producer, 3)
    assert cnx.pauses == ["pause"]
    await rig.clock.sleep(0.1)
    assert cnx.pauses == ["pause", "resume"]
    assert len(cnx.take()) == 4


@pytest.mark.parametrize("way", ["close", "lost", "disconnect"])
async def test_what_waits_behind_a_refusal_goes_with_its_producer(rig: Rig, way: str) -> None:
    topic, cnx = await small_topic(rig), rig.cnx()
    producer = await rig.producer(topic, cnx)
    send(producer, 0)
    send(producer, 1, TOO_LARGE)
    send(producer, 2)
    if way == "close":
        await producer.close()
    elif way == "lost":
        producer.on_connection_lost()
    else:
        producer.disconnect()
    await rig.clock.sleep(0.1)
    assert cnx.take() == ["receipt 0 at 0"]
    assert cnx.in_flight.entries_count == cnx.in_flight.held_bytes == 0
    assert cnx.in_flight.buffer.bytes_count == 0
    assert topic.last_message_position().entry_id == 0


@pytest.mark.parametrize("error", [NotAllowedError("n"), ServiceMetadataError("m")])
async def test_clients_on_the_cpp_library_are_told_what_ends_a_message(
    rig: Rig, error: PulsarError
) -> None:
    topic, cnx = await rig.persistent(), rig.cnx()
    cnx.client_version = "Pulsar-CPP-v4.2.0"
    producer = await rig.producer(topic, cnx)

    def refuse(data: bytes, context: Any) -> None:
        raise error

    producer.set_append(refuse)
    send(producer, 2)
    refusal = cnx.received[-1].send_error
    assert (refusal.error, refusal.message) == (ServerError.ChecksumError, str(error))
    error = ManagedLedgerFencedError("f")  # one that goes away keeps its code
    send(producer, 3)
    assert cnx.take() == ["error 2 ChecksumError", "error 3 PersistenceError"]
