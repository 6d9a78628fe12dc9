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
from pulsar_py.server.publishing.producer import CHUNK, MARKER, MESSAGE, ProducerState
from tests.unit.server.topics.rig import Rig, entry, send


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
