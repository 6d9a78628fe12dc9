"""Tasks of a read, run in this thread against a broker in another."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Iterator

import pyarrow as pa
import pytest

from pulsar_py.client import Client
from pulsar_py.client.messages.message import Message
from pulsar_py.common.position import Position
from pulsar_py.spark.planning.pieces import Piece
from pulsar_py.spark.planning.plans import PlannedPiece
from pulsar_py.spark.reading.read_task import ReadTask, within
from pulsar_py.spark.values.topic_schemas import RawValues
from pulsar_py.testing.broker_thread import BrokerThread
from tests.unit.spark.broker_parts import publish, read_options
from tests.unit.spark.message_parts import batch, plain

TOPIC = "persistent://public/default/reading"


@pytest.fixture
def broker() -> Iterator[BrokerThread]:
    with BrokerThread() as broker:
        yield broker


def filled(broker: BrokerThread, count: int) -> list[Position]:
    async def fill() -> list[Position]:
        async with Client(broker.service_url) as client:
            return await publish(client, TOPIC, range(count))

    return asyncio.run(fill())


def task_of(broker: BrokerThread, **options: str) -> ReadTask:
    return ReadTask(
        read_options(broker.service_url, topic=TOPIC, **options),
        RawValues(),
        ("value", "__entryId"),
    )


def test_a_task_that_was_sent_to_a_worker_reads_its_piece(broker: BrokerThread) -> None:
    positions = filled(broker, 20)
    task = pickle.loads(pickle.dumps(task_of(broker, arrowBatchBytes="8")))
    batches = list(task.read(PlannedPiece(Piece(TOPIC, positions[5], positions[15]))))
    table = pa.Table.from_batches(batches)
    assert len(batches) > 1
    assert table["value"].to_pylist() == [b"%d" % index for index in range(5, 15)]
    assert table["__entryId"].to_pylist() == [each.entry_id for each in positions[5:15]]


def test_a_reader_that_is_left_early_leaves_nothing_open(broker: BrokerThread) -> None:
    positions = filled(broker, 20)
    planned = PlannedPiece(Piece(TOPIC, positions[0], positions[19]))
    rows = task_of(broker, arrowBatchBytes="1").read(planned)
    assert next(rows)["value"].to_pylist() == [b"0"]
    rows.close()
    again = list(task_of(broker).read(planned))
    assert sum(len(each) for each in again) == 19


def test_messages_outside_the_bounds_are_left_out() -> None:
    piece = Piece("t", Position(6, 9), Position(9, 0))
    messages: list[Message] = [*batch([b"0", b"1", b"2"]), plain(b"x", publish_time=9000)]

    def kept(**bounds: int) -> list[bytes]:
        return [each.data() for each in within(messages, PlannedPiece(piece, **bounds))]

    assert kept(first_batch_index=1) == [b"1", b"2", b"x"]
    assert kept(min_publish_millis=2001) == [b"x"]
    assert kept(max_publish_millis=2000) == [b"0", b"1", b"2"]
    assert kept() == [b"0", b"1", b"2", b"x"]
