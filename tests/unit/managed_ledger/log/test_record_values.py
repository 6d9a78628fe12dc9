"""record_values: every compression of Apache Pulsar's, and fields of newer versions."""

from __future__ import annotations

import json
import zlib
from pathlib import Path

import cramjam
import pytest
import zstandard

from pulsar_py.common.errors import CorruptDataError
from pulsar_py.common.position import Position
from pulsar_py.managed_ledger.cursors.format import (
    CursorRecord,
    decode_cursor_record,
    encode_cursor_record,
)
from pulsar_py.managed_ledger.log.ledger_format import (
    LedgerList,
    decode_ledger_list,
    encode_ledger_list,
)
from pulsar_py.managed_ledger.log.ledger_state import LedgerState
from pulsar_py.managed_ledger.log.record_values import (
    MAX_BYTES,
    RecordCodec,
    RecordCompression,
    decompressed,
    unknown_fields,
)
from pulsar_py.proto.MLDataFormats_pb2 import (
    CompressionType,
    ManagedCursorInfo,
    ManagedLedgerInfo,
    ManagedLedgerInfoMetadata,
)

RECORDINGS = Path(__file__).parents[3] / "recordings" / "managed_ledger_records.json"
PLAIN = bytes.fromhex("0a04081e2000") * 50


def without_final_block(data: bytes) -> bytes:
    """A ZLIB stream as Pulsar ends it."""
    compressor = zlib.compressobj()
    return compressor.compress(data) + compressor.flush(zlib.Z_SYNC_FLUSH)


CODECS = {
    CompressionType.NONE: lambda data: data,
    CompressionType.LZ4: lambda data: bytes(cramjam.lz4.compress_block(data, store_size=False)),
    CompressionType.ZLIB: without_final_block,
    CompressionType.ZSTD: zstandard.ZstdCompressor().compress,
    CompressionType.SNAPPY: lambda data: bytes(cramjam.snappy.compress_raw(data)),
}
UNKNOWN = bytes.fromhex("f2bb03036e6577" + "c0bb0305")  # texts and numbers of fields 7102 and 7096


def recorded(name: str) -> bytes:
    records = json.loads(RECORDINGS.read_text())["records"]
    return bytes.fromhex(next(each["hex"] for each in records if each["name"] == name))


def topic(name: str) -> LedgerList:
    return decode_ledger_list(recorded(name))


def cursor(name: str) -> CursorRecord:
    return decode_cursor_record(recorded(name))


def value(kind: int, data: bytes, size: int) -> bytes:
    header = ManagedLedgerInfoMetadata(compressionType=kind, uncompressedSize=size)
    text = header.SerializeToString()
    return b"\x47\x78" + len(text).to_bytes(4, "big") + text + data


@pytest.mark.parametrize("kind", CODECS, ids=CompressionType.Name)
def test_every_compression_is_read(kind: int) -> None:
    assert decompressed(value(kind, CODECS[kind](PLAIN), len(PLAIN))) == PLAIN
    assert decompressed(value(kind, CODECS[kind](b"a"), 1)) == b"a"


def test_a_plain_value_is_as_it_is() -> None:
    assert decompressed(PLAIN) is PLAIN
    assert decompressed(b"") == b""


@pytest.mark.parametrize("kind", CODECS, ids=CompressionType.Name)
@pytest.mark.parametrize("size", [0, len(PLAIN) - 1, len(PLAIN) + 1, MAX_BYTES + 1])
def test_another_size_than_the_headers_is_damage(kind: int, size: int) -> None:
    with pytest.raises(CorruptDataError):
        decompressed(value(kind, CODECS[kind](PLAIN), size))


@pytest.mark.parametrize("kind", [each for each in CODECS if each], ids=CompressionType.Name)
def test_what_is_damaged_is_named(kind: int) -> None:
    with pytest.raises(CorruptDataError):
        decompressed(value(kind, b"\xff" * 20, len(PLAIN)))
    with pytest.raises(CorruptDataError):
        decompressed(b"\x47\x78\x00\x00\x00\x02\xff\xff")


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


def test_unknown_fields_of_a_list_survive_its_changes() -> None:
    info = ManagedLedgerInfo()
    info.ledgerInfo.add(ledgerId=5, entries=2, size=7, timestamp=9).MergeFromString(UNKNOWN)
    info.ledgerInfo.add(ledgerId=6)
    info.properties.add(key="k", value="v")
    stored = decode_ledger_list(info.SerializeToString() + UNKNOWN)
    state = LedgerState(stored)
    for written in (state.stored(), state.with_next_ledger(7)):
        value_again = encode_ledger_list(written)
        assert unknown_fields(value_again, ManagedLedgerInfo()) == UNKNOWN
        first = ManagedLedgerInfo.FromString(value_again).ledgerInfo[0]
        assert unknown_fields(first.SerializeToString(), ManagedLedgerInfo.LedgerInfo()) == UNKNOWN
    assert decode_ledger_list(encode_ledger_list(state.stored())).unknown_fields == UNKNOWN


@pytest.mark.parametrize("adds_to_ledger", [False, True])
def test_unknown_fields_of_a_cursor_survive_a_rewrite(*, adds_to_ledger: bool) -> None:
    info = ManagedCursorInfo(cursorsLedgerId=3, markDeleteLedgerId=1, markDeleteEntryId=2)
    record = decode_cursor_record(info.SerializeToString() + UNKNOWN)
    assert record.unknown_fields == UNKNOWN
    again = encode_cursor_record(
        record.snapshot, {}, cursor_ledger_id=3, adds_to_ledger=adds_to_ledger, unknown=UNKNOWN
    )
    found = decode_cursor_record(again.data)
    assert found.unknown_fields == UNKNOWN
    assert found.adds_to_ledger == adds_to_ledger


@pytest.mark.parametrize("codec", RecordCodec)
def test_what_is_written_is_smaller_and_read_again(codec: RecordCodec) -> None:
    compression = RecordCompression(codec, threshold_bytes=len(PLAIN) - 1)
    value = compression.written(PLAIN)
    assert decompressed(value) == PLAIN
    if codec is RecordCodec.NONE:
        assert value == PLAIN
        return
    assert len(value) < len(PLAIN)
    end = 6 + int.from_bytes(value[2:6], "big")
    header = ManagedLedgerInfoMetadata.FromString(value[6:end])
    assert CompressionType.Name(header.compressionType) == codec.value
    assert header.uncompressedSize == len(PLAIN)


def test_up_to_the_threshold_records_stay_plain() -> None:
    compression = RecordCompression(RecordCodec.ZSTD, threshold_bytes=len(PLAIN))
    assert compression.written(PLAIN) == PLAIN
