"""Tasks of a read, run in this thread against a broker in another."""

from __future__ import annotations

import asyncio
import pickle
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pulsar_py.client import Client
from pulsar_py.client.messages.message import EntryKey, Message
from pulsar_py.common.position import Position
from pulsar_py.spark.planning.pieces import Piece
from pulsar_py.spark.planning.plans import PlannedPiece
from pulsar_py.spark.reading import read_task
from pulsar_py.spark.reading.read_task import ReadTask, within
from pulsar_py.spark.reading.short_circuit_source import stored_runs
from pulsar_py.spark.values.topic_schemas import RawValues
from pulsar_py.testing.broker_thread import BrokerThread
from pulsar_py.wire.short_circuit import LendingBroker, encode_greeting
from tests.unit.client.entries import single
from tests.unit.client.lender import Lender, descriptors_count, here
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


# --- short-circuit ---------------------------------------------------------------------------------


def entries_of(positions: list[Position], texts: Iterable[str]) -> dict[EntryKey, bytes]:
    """As files have them; the texts are not what the broker would give, so that both are told."""
    return {
        (each.ledger_id, each.entry_id): single(text.encode())
        for each, text in zip(positions, texts, strict=True)
    }


def short_circuit(broker: BrokerThread, lender: Lender, **options: str) -> ReadTask:
    lender.greeting = encode_greeting(
        LendingBroker(here(), [("127.0.0.1", int(broker.service_url.rpartition(":")[2]))])
    )
    return task_of(broker, shortCircuitSocketPath=lender.path, **options)


def values_of(task: ReadTask, piece: Piece) -> list[bytes]:
    return [
        value for batch in task.read(PlannedPiece(piece)) for value in batch["value"].to_pylist()
    ]


def test_a_piece_is_read_from_files_and_the_rest_through_the_broker(
    broker: BrokerThread, tmp_path: Path
) -> None:
    positions = filled(broker, 20)
    entries = entries_of(positions[:12], (f"file {index}" for index in range(12)))
    with Lender(tmp_path, entries) as lender:
        task = pickle.loads(pickle.dumps(short_circuit(broker, lender)))
        piece = Piece(TOPIC, positions[5], positions[15])
        assert values_of(task, piece) == [
            *(b"file %d" % index for index in range(5, 12)),
            *(b"%d" % index for index in range(12, 15)),
        ]


def test_a_piece_that_files_have_needs_no_client(
    broker: BrokerThread, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    positions = filled(broker, 3)
    with Lender(tmp_path, entries_of(positions, "abc")) as lender:
        task = short_circuit(broker, lender)
        monkeypatch.setattr(read_task, "runtime", None)
        assert values_of(task, Piece(TOPIC, positions[0], positions[2])) == [b"a", b"b"]


def test_bounds_of_the_query_hold_for_what_files_have(broker: BrokerThread, tmp_path: Path) -> None:
    positions = filled(broker, 3)
    with Lender(tmp_path, entries_of(positions, "abc")) as lender:
        task = short_circuit(broker, lender)
        planned = PlannedPiece(Piece(TOPIC, positions[0], positions[2]), min_publish_millis=1001)
        assert [*task.read(planned)] == []  # `single` has a publish time of 1000


def test_a_compacted_read_and_another_broker_read_no_files(
    broker: BrokerThread, tmp_path: Path
) -> None:
    positions = filled(broker, 3)
    piece = Piece(TOPIC, positions[0], positions[2])
    with Lender(tmp_path, entries_of(positions, "abc")) as lender, BrokerThread() as other:
        assert values_of(short_circuit(broker, lender, readCompacted="true"), piece) == [b"0", b"1"]
        assert lender.requests == []
        short_circuit(other, lender)  # from now on it says that it is the other broker's
        task = task_of(broker, shortCircuitSocketPath=lender.path)
        assert values_of(task, piece) == [b"0", b"1"]
        assert lender.requests == []


@pytest.mark.parametrize(("has_unix_socket", "others"), [("false", []), ("true", ["pulsar-rows"])])
def test_only_beside_a_unix_socket_of_spark_another_thread_reads_files(
    broker: BrokerThread,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    has_unix_socket: str,
    others: list[str],
) -> None:
    monkeypatch.setenv("PYTHON_UNIX_DOMAIN_ENABLED", has_unix_socket)
    own = threading.current_thread().name
    threads: set[str] = set()

    def noting(*arguments: Any) -> Any:  # Any: as `stored_runs` has them
        threads.add(threading.current_thread().name)
        return stored_runs(*arguments)

    monkeypatch.setattr(read_task, "stored_runs", noting)
    positions = filled(broker, 3)
    with Lender(tmp_path, entries_of(positions, "abc")) as lender:
        task = short_circuit(broker, lender)
        assert values_of(task, Piece(TOPIC, positions[0], positions[2])) == [b"a", b"b"]
    assert threads == {*(others or [own])}


@pytest.mark.parametrize("has_unix_socket", ["false", "true"])
def test_a_short_circuit_reader_that_is_left_early_leaves_nothing_open(
    broker: BrokerThread, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_unix_socket: str
) -> None:
    monkeypatch.setenv("PYTHON_UNIX_DOMAIN_ENABLED", has_unix_socket)
    positions = filled(broker, 9)
    before = descriptors_count()
    with Lender(tmp_path, entries_of(positions, "abcdefghi"), per_run=1) as lender:
        task = short_circuit(broker, lender, arrowBatchBytes="1")
        rows = task.read(PlannedPiece(Piece(TOPIC, positions[0], positions[8])))
        assert next(iter(rows))["value"].to_pylist() == [b"a"]
        rows.close()
    assert descriptors_count() <= before
