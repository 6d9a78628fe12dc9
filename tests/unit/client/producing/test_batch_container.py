"""When a batch is full, what shares one, and in which order batches go."""

from __future__ import annotations

import math

from pulsar_py.client.producing.batch_container import (
    BatchContainer,
    Container,
    KeyBasedBatchContainer,
)
from pulsar_py.client.producing.message_builder import OutgoingMessage
from pulsar_py.client.producing.send_result import SendResult


def message(payload: bytes = b"x", **options: object) -> OutgoingMessage:
    made = OutgoingMessage(payload, **options)  # type: ignore[arg-type]
    made.payload = payload
    return made


def add(container: Container, made: OutgoingMessage, now: float = 0.0) -> SendResult:
    assert container.fits(made, len(made.payload))
    return container.add(made, len(made.payload), now, -1)


def test_the_count_fills_it() -> None:
    container = BatchContainer(3, 100)
    add(container, message())
    assert container.add_plain(b"y", 1) is not None
    assert not container.is_full
    assert container.add_plain(b"z", 1) is not None
    assert container.is_full
    (batch,) = container.take()
    assert batch.messages == [b"x", b"y", b"z"]
    assert (container.messages_count, container.bytes_count, container.is_full) == (0, 0, False)


def test_the_bytes_fill_it() -> None:
    container = BatchContainer(100, 10)
    add(container, message(b"12345"))
    assert container.add_plain(b"1234567", 7) is None
    assert not container.fits(message(b"123456"), 6)
    assert container.add_plain(b"12345", 5) is not None
    assert container.is_full


def test_of_several_it_takes_those_that_fit() -> None:
    payloads, ends = [b"1", b"22", b"333", b"4444"], [1, 3, 6, 10]
    by_bytes = BatchContainer(100, 11)
    assert by_bytes.add_plain_run(payloads, ends, 0) is None, "none is open"
    entry, *_ = add(by_bytes, message(b"123456"))._parts
    assert by_bytes.add_plain_run(payloads, ends, 1) == (entry, 1, 2)
    assert (by_bytes.messages_count, by_bytes.bytes_count, by_bytes.is_full) == (3, 11, True)
    (batch,) = by_bytes.take()
    assert (batch.messages, batch.bytes_count) == ([b"123456", b"22", b"333"], 11)
    by_count = BatchContainer(3, 100)
    add(by_count, message(b"0"))
    assert by_count.add_plain_run(payloads, ends, 0)[1:] == (1, 2)
    assert by_count.is_full
    by_count.take()
    add(by_count, message(b"0"))
    assert by_count.add_plain_run(payloads, ends, 3)[1:] == (1, 1)
    assert not by_count.is_full


def test_an_empty_container_takes_any_size() -> None:
    container = BatchContainer(100, 10)
    add(container, message(b"x" * 50))
    assert container.is_full


def test_the_short_way_needs_an_open_plain_batch() -> None:
    container = BatchContainer(100, 100)
    assert container.add_plain(b"x", 1) is None
    add(container, message(replication_clusters=["c"]))
    assert container.add_plain(b"x", 1) is None


def test_what_an_entry_says_for_all_has_to_be_equal() -> None:
    container = BatchContainer(100, 100)
    add(container, message(replication_clusters=["c"]))
    assert container.fits(message(replication_clusters=["c"]), 1)
    assert not container.fits(message(replication_clusters=["d"]), 1)
    other_schema = message(replication_clusters=["c"])
    other_schema.schema_version = b"1"
    assert not container.fits(other_schema, 1)


def test_keys_properties_and_own_ids_may_share_a_batch() -> None:
    container = BatchContainer(100, 100)
    with_key = message(partition_key="k")
    with_id = message(sequence_id=7)
    for each in (message(), with_key, with_id):
        add(container, each)
    (batch,) = container.take()
    assert batch.messages == [b"x", with_key, with_id]
    assert batch.has_own_ids


def test_results_count_up() -> None:
    container = BatchContainer(100, 100)
    results = [add(container, message()) for _ in range(2)]
    results.append(container.add_plain(b"x", 1))  # type: ignore[arg-type]
    (batch,) = container.take()
    batch.entry.batch_size = 3
    batch.entry.confirm(1, 2)
    assert [each.result().batch_index for each in results] == [0, 1, 2]


def test_it_knows_when_it_began() -> None:
    for container in (BatchContainer(9, 99), KeyBasedBatchContainer(9, 99)):
        assert container.begun_at == math.inf
        add(container, message(), now=4.0)
        add(container, message(partition_key="k"), now=5.0)
        assert container.begun_at == 4.0
        container.take()
        assert container.begun_at == math.inf
        assert container.take() == []


def test_by_key_there_is_one_batch_a_key_in_the_order_of_first_messages() -> None:
    container = KeyBasedBatchContainer(6, 100)
    for payload, key in ((b"1", "b"), (b"2", "a"), (b"3", "b"), (b"4", None), (b"5", "a")):
        add(container, message(payload, partition_key=key))
    assert not container.is_full
    add(container, message(b"6", partition_key="c", ordering_key="b"))
    assert container.is_full
    batches = [
        [each if isinstance(each, bytes) else each.payload for each in batch.messages]
        for batch in container.take()
    ]
    assert batches == [[b"1", b"3", b"6"], [b"2", b"5"], [b"4"]]
    assert container.add_plain(b"x", 1) is None
