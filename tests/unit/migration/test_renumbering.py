from __future__ import annotations

import pytest

from pulsar_py.common.errors import CorruptDataError
from pulsar_py.common.position import Position
from pulsar_py.ledgers import labels
from pulsar_py.managed_ledger.cursors.format import decode_cursor_record
from pulsar_py.managed_ledger.log.record_values import RecordCodec, RecordCompression
from pulsar_py.migration.renumbering import Renumbering
from pulsar_py.proto.MLDataFormats_pb2 import ManagedLedgerInfo, PositionInfo
from pulsar_py.proto.PulsarApi_pb2 import MessageIdData
from pulsar_py.proto.PulsarPyCursor_pb2 import CursorExtension
from tests.migration_parts import (
    BUCKET,
    COMPACTED,
    CURSOR,
    DATA,
    LAST,
    NAMES,
    SCHEMA,
    TOPIC,
    all_labels,
    entries,
    keys,
)

BY = Renumbering(1000)


def test_ids_grow_by_the_same_number_and_what_is_no_ledger_stays() -> None:
    assert [BY.ledger_id(each) for each in (-1, 0, 1, 7)] == [-1, 0, 1001, 1007]
    assert BY.ledger_id((1 << 64) - 1) == (1 << 64) - 1  # -1 without a sign


def test_every_entry_is_rewritten_where_it_names_ledgers() -> None:
    own, wanted = all_labels(), entries(1000)
    for ledger_id, held in entries().items():
        found = [BY.entry(own[ledger_id], number, data) for number, data in enumerate(held)]
        assert found == wanted[ledger_id + 1000], ledger_id


def test_records_are_rewritten() -> None:
    before, wanted = keys(), keys(1000)
    assert BY.topic_record(before[TOPIC]) == wanted[TOPIC]
    for cursor in ("sub", "__compaction"):
        path = f"{TOPIC}/{cursor}"
        assert BY.cursor_record(before[path], cursor) == wanted[path]
    schema = "/schemas/t/n/topic"
    assert BY.schema_locator(before[schema]) == wanted[schema]


def test_without_an_offset_every_byte_stays() -> None:
    kept = Renumbering()
    assert kept.topic_record(b"\xff") == b"\xff"
    assert kept.cursor_record(b"\xff", "sub") == b"\xff"
    assert kept.schema_locator(b"\xff") == b"\xff"
    for ledger_id, held in entries().items():
        assert [kept.entry(all_labels()[ledger_id], 0, data) for data in held] == held
        assert kept.labels(all_labels()[ledger_id]) == all_labels()[ledger_id]


def test_labels_that_name_ledgers_are_rewritten() -> None:
    found = BY.labels(all_labels()[COMPACTED])
    to = MessageIdData.FromString(found[labels.COMPACTED_TO])
    assert (to.ledgerId, to.entryId) == (DATA + 1000, 1)
    key = BY.labels(all_labels()[BUCKET])[labels.BUCKET_KEY]
    assert key == b"#pulsar.internal.delayed.bucket_%d_%d" % (DATA + 1000, LAST + 1000)
    assert BY.labels(all_labels()[DATA]) == all_labels()[DATA]


def test_a_nowhere_compacted_ledger_s_label_stays() -> None:
    nowhere = MessageIdData(ledgerId=(1 << 64) - 1, entryId=(1 << 64) - 1).SerializeToString()
    own = labels.compacted_ledger("c", "t", nowhere)
    assert BY.labels(own) == own


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("delayed.bucket_3_11", "7", ("delayed.bucket_1003_1011", "1007")),
        ("pulsar-py.delayed-part_3_3_2", "7", ("pulsar-py.delayed-part_1003_1003_2", "1007")),
        ("pulsar-py.delayed-doomed", "7,8", ("pulsar-py.delayed-doomed", "1007,1008")),
        ("compacting-ledger", "7", ("compacting-ledger", "1007")),
        ("pulsar-py.sequence-id-ledgers", "", ("pulsar-py.sequence-id-ledgers", "")),
        ("pulsar-py.paused", "7", ("pulsar-py.paused", "7")),
    ],
)
def test_properties_that_name_ledgers_are_rewritten(
    name: str, text: str, expected: tuple[str, str]
) -> None:
    prefix = "#pulsar.internal."
    assert BY.property_text(prefix + name, text) == (prefix + expected[0], expected[1])
    assert BY.property_text(name, text) == (name, text)  # a user's


def test_segments_and_changes_of_large_cursors_are_rewritten() -> None:
    extension = CursorExtension(addsToLedger=True)
    segment = extension.segment
    segment.version, segment.kind, segment.ledgerId, segment.page, segment.data = 1, 0, 3, 0, b"b"
    extension.segments.version = extension.changes.version = 1
    extension.segments.ledgerId.extend([3, 11])
    extension.changes.ledgerId.append(11)
    extension.changes.batches.add(version=1, kind=1, ledgerId=3, page=0, data=b"c")
    info = PositionInfo(ledgerId=DATA, entryId=0)
    info.individualDeletedMessageRanges.add(key=LAST, values=[1])
    batch = info.batchedEntryDeletionIndexInfo.add()
    batch.position.ledgerId, batch.position.entryId = LAST, 2
    unknown = b"\x82\xf7\x02\x03new"  # field 6000
    data = info.SerializeToString() + extension.SerializeToString() + unknown

    found = BY.entry(all_labels()[CURSOR], 0, data)

    read = CursorExtension.FromString(found)
    assert (read.segment.ledgerId, read.segment.data) == (1003, b"b")
    assert list(read.segments.ledgerId) == [1003, 1011]
    assert list(read.changes.ledgerId) == [1011]
    assert [each.ledgerId for each in read.changes.batches] == [1003]
    assert read.addsToLedger
    position = PositionInfo.FromString(found)
    assert position.ledgerId == DATA + 1000
    assert position.individualDeletedMessageRanges[0].key == LAST + 1000
    assert position.batchedEntryDeletionIndexInfo[0].position.ledgerId == LAST + 1000
    assert unknown in found
    plain = BY.entry(all_labels()[CURSOR], 0, info.SerializeToString())
    assert not CursorExtension.FromString(plain).HasField("segments")


def test_a_number_of_another_cursor_is_a_producer_s() -> None:
    info = PositionInfo(ledgerId=DATA, entryId=0)
    info.properties.add(name="CompactedTopicLedger", value=7)
    found = BY.entry(all_labels()[CURSOR], 0, info.SerializeToString())
    assert PositionInfo.FromString(found).properties[0].value == 7
    record = keys()[f"{TOPIC}/__compaction"]
    assert decode_cursor_record(BY.cursor_record(record, "other")).snapshot.properties == {
        "CompactedTopicLedger": COMPACTED
    }


def test_a_compressed_record_is_read_and_one_with_new_fields_keeps_them() -> None:
    plain = keys()[TOPIC] + b"\x82\xf7\x02\x03new"
    compressed = RecordCompression(RecordCodec.ZLIB, 0).written(plain)
    found = BY.topic_record(compressed)
    info = ManagedLedgerInfo.FromString(found)
    assert [each.ledgerId for each in info.ledgerInfo] == [DATA + 1000, LAST + 1000]
    assert found.endswith(b"new")


@pytest.mark.parametrize("ledger_id", [SCHEMA, NAMES, COMPACTED, BUCKET])
def test_what_can_not_be_read_is_not_guessed(ledger_id: int) -> None:
    with pytest.raises(CorruptDataError):
        BY.entry(all_labels()[ledger_id], 1, b"\xff\xff")


def test_a_cursor_s_position_is_the_new_one() -> None:
    record = BY.cursor_record(keys()[f"{TOPIC}/sub"], "sub")
    assert decode_cursor_record(record).snapshot.mark_delete_position == Position(DATA + 1000, 0)
