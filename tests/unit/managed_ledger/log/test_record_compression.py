"""Records of topics and cursors in every form that Apache Pulsar's settings can give them."""

from __future__ import annotations

import json
import zlib
from pathlib import Path

import cramjam
import pytest
import zstandard

from pulsar_py.common.errors import CorruptDataError
from pulsar_py.common.position import Position
from pulsar_py.managed_ledger.cursors.format import CursorRecord, decode_cursor_record
from pulsar_py.managed_ledger.log.ledger_format import LedgerList, decode_ledger_list
from pulsar_py.managed_ledger.log.record_compression import MAX_INFLATED_BYTES, inflate
from pulsar_py.proto.MLDataFormats_pb2 import CompressionType

RECORDINGS = Path(__file__).parents[3] / "recordings" / "managed_ledger_records.json"
PLAIN = b"a record of a topic, a record of a cursor " * 20


def recorded(name: str) -> bytes:
    records = json.loads(RECORDINGS.read_text())["records"]
    return bytes.fromhex(next(each["hex"] for each in records if each["name"] == name))


def topic(name: str) -> LedgerList:
    return decode_ledger_list(recorded(name))


def cursor(name: str) -> CursorRecord:
    return decode_cursor_record(recorded(name))


def without_final_block(data: bytes) -> bytes:
    """A ZLIB stream as Pulsar ends it."""
    compressor = zlib.compressobj()
    return compressor.compress(data) + compressor.flush(zlib.Z_SYNC_FLUSH)


STORED = {
    CompressionType.NONE: PLAIN,
    CompressionType.LZ4: bytes(cramjam.lz4.compress_block(PLAIN, store_size=False)),
    CompressionType.ZLIB: without_final_block(PLAIN),
    CompressionType.ZSTD: zstandard.ZstdCompressor().compress(PLAIN),
    CompressionType.SNAPPY: bytes(cramjam.snappy.compress_raw(PLAIN)),
}


def test_recorded_topics_are_read() -> None:
    assert [each.ledger_id for each in topic("one open ledger").ledgers] == [20]
    two = topic("a closed and an open ledger").ledgers
    assert [(each.ledger_id, each.entries_count, each.size_bytes) for each in two] == [
        (6, 1, 33),
        (8, 0, 0),
    ]


def test_recorded_topics_in_lz4_are_read() -> None:
    assert [each.ledger_id for each in topic("compressed ManagedLedgerInfo, LZ4").ledgers] == [30]
    ended = topic("terminated, with properties, LZ4")
    assert ended.terminated_position is not None
    assert ended.properties == {"k": "v"}


def test_recorded_cursors_are_read() -> None:
    live = cursor("cursor with a cursor ledger")
    assert live.cursor_ledger_id == 21
    assert live.snapshot.mark_delete_position == Position(20, -1)
    closed = cursor("cursor closed, hole in the record").snapshot
    assert list(closed.individual_deleted_messages.ranges()) == [(20, 3, 4)]
    assert cursor("cursor never used").cursor_ledger_id == -1


def test_recorded_cursors_in_zstd_are_read() -> None:
    holes = cursor("compressed ManagedCursorInfo, ZSTD").snapshot
    assert list(holes.individual_deleted_messages.ranges()) == [(30, 3, 4)]
    batches = cursor("cursor with batch indexes, ZSTD").snapshot.batch_deleted_indexes
    assert [position for position, _ in batches.items()] == [Position(33, 0), Position(34, 0)]


@pytest.mark.parametrize("kind", STORED, ids=CompressionType.Name)
def test_every_compression_is_read(kind: CompressionType.ValueType) -> None:
    assert inflate(kind, STORED[kind], len(PLAIN)) == PLAIN


@pytest.mark.parametrize("size", [0, len(PLAIN) - 1, len(PLAIN) + 1])
@pytest.mark.parametrize(
    "kind", [kind for kind in STORED if kind != CompressionType.NONE], ids=CompressionType.Name
)
def test_another_size_than_the_record_names_is_an_error(
    kind: CompressionType.ValueType, size: int
) -> None:
    with pytest.raises(CorruptDataError, match=CompressionType.Name(kind)):
        inflate(kind, STORED[kind], size)


@pytest.mark.parametrize(
    "kind", [kind for kind in STORED if kind != CompressionType.NONE], ids=CompressionType.Name
)
def test_damage_is_an_error(kind: CompressionType.ValueType) -> None:
    with pytest.raises(CorruptDataError, match=CompressionType.Name(kind)):
        inflate(kind, b"\xff" + STORED[kind][5:20], len(PLAIN))


@pytest.mark.parametrize("size", [-1, MAX_INFLATED_BYTES + 1])
def test_a_size_that_nothing_has_is_an_error(size: int) -> None:
    with pytest.raises(CorruptDataError, match="claims a size"):
        inflate(CompressionType.LZ4, b"", size)
