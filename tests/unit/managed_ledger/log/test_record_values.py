"""record_values: every compression of Apache Pulsar's, and fields of newer versions."""

from __future__ import annotations

import zlib

import cramjam
import pytest
import zstandard

from pulsar_py.common.errors import CorruptDataError
from pulsar_py.common.position import Position
from pulsar_py.managed_ledger.cursors.format import (
    decode_cursor_record,
    encode_cursor_record,
)
from pulsar_py.managed_ledger.log.ledger_format import decode_ledger_list, encode_ledger_list
from pulsar_py.managed_ledger.log.ledger_state import LedgerState
from pulsar_py.managed_ledger.log.record_values import MAX_BYTES, decompressed, unknown_fields
from pulsar_py.proto.MLDataFormats_pb2 import (
    CompressionType,
    ManagedCursorInfo,
    ManagedLedgerInfo,
    ManagedLedgerInfoMetadata,
)

PLAIN = bytes.fromhex("0a04081e2000") * 50
CODECS = {
    CompressionType.NONE: lambda data: data,
    CompressionType.LZ4: lambda data: bytes(cramjam.lz4.compress_block(data, store_size=False)),
    CompressionType.ZLIB: zlib.compress,
    CompressionType.ZSTD: zstandard.ZstdCompressor().compress,
    CompressionType.SNAPPY: lambda data: bytes(cramjam.snappy.compress_raw(data)),
}
UNKNOWN = bytes.fromhex("f2bb03036e6577" + "c0bb0305")  # texts and numbers of fields 7102 and 7096


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


def test_apaches_list_of_ledgers_is_read() -> None:
    """Recorded from Apache Pulsar 4.2.4 with managedLedgerInfoCompressionType=LZ4."""
    one = decode_ledger_list(bytes.fromhex("47780000000408011006600a04081e2000"))
    assert [record.ledger_id for record in one.ledgers] == [30]
    ended = decode_ledger_list(
        bytes.fromhex(
            "47780000000408011032f1040a0d08211001187d20f8b798b4a0340a0d08220f0021cfbf0f00f404"
            "04082320001204082310001a060a016b120176"
        )
    )
    assert [record.ledger_id for record in ended.ledgers] == [33, 34, 35]
    assert ended.terminated_position == Position(35, 0)
    assert ended.properties == {"k": "v"}


def test_apaches_cursor_is_read() -> None:
    """Recorded from Apache Pulsar 4.2.4 with managedCursorInfoCompressionType=ZSTD."""
    record = decode_cursor_record(
        bytes.fromhex(
            "4778000000040803102428b52ffd2424050100c008ff01101e1801220c0a04081e10021204309bf495"
            "b4a0340200294111000bb63a8d67"
        )
    )
    assert record.snapshot.mark_delete_position == Position(30, 1)
    assert list(record.snapshot.individual_deleted_messages.ranges()) == [(30, 3, 4)]


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
