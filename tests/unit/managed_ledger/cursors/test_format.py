"""Stored forms of a cursor: both read back, limits counted, old records understood."""

import pytest

from pulsar_py.common.errors import CorruptDataError
from pulsar_py.common.position import Position
from pulsar_py.managed_ledger.cursors.format import (
    CursorSnapshot,
    decode_cursor_record,
    decode_position_info,
    encode_cursor_record,
    encode_position_info,
)
from pulsar_py.proto.MLDataFormats_pb2 import ManagedCursorInfo, PositionInfo


def ragged():
    content = CursorSnapshot(Position(5, 2), properties={"n": 7})
    for position in ("5:4", "5:5", "5:9", "7:0", "7:64"):
        content.individual_deleted_messages.add(Position.parse(position))
    content.batch_deleted_indexes.put(Position(5, 7), 0b1101)
    content.batch_deleted_indexes.put(Position(7, 3), 1 << 70)
    return content


def encode(content, *, max_ranges=100, max_batches=100, as_long_arrays=False):
    return encode_position_info(
        content, max_ranges=max_ranges, max_batches=max_batches, as_long_arrays=as_long_arrays
    )


@pytest.mark.parametrize("as_long_arrays", [True, False])
def test_a_state_reads_back(as_long_arrays):
    content = ragged()
    again = decode_position_info(encode(content, as_long_arrays=as_long_arrays).data)
    assert again.mark_delete_position == content.mark_delete_position
    assert again.individual_deleted_messages == content.individual_deleted_messages
    assert list(again.batch_deleted_indexes.items()) == list(content.batch_deleted_indexes.items())
    assert again.properties == {"n": 7}


def test_fields_are_pulsars():
    info = PositionInfo.FromString(encode(ragged()).data)
    first = info.individualDeletedMessages[0]
    assert (first.lowerEndpoint.entryId, first.upperEndpoint.entryId) == (3, 5)
    assert info.batchedEntryDeletionIndexInfo[0].deleteSet == [0b1101]
    assert info.batchedEntryDeletionIndexInfo[1].deleteSet == [0, 64]
    words = PositionInfo.FromString(encode(ragged(), as_long_arrays=True).data)
    assert not words.individualDeletedMessages
    assert [(each.key, list(each.values)) for each in words.individualDeletedMessageRanges] == [
        (5, [0b1000110000]),
        (7, [1, 1]),
    ]


@pytest.mark.parametrize("as_long_arrays", [True, False])
@pytest.mark.parametrize("max_ranges", [0, 1, 2, 3])
def test_what_exceeds_a_limit_is_counted_and_the_oldest_kept(as_long_arrays, max_ranges):
    content = ragged()
    encoded = encode(content, max_ranges=max_ranges, max_batches=1, as_long_arrays=as_long_arrays)
    assert encoded.ranges_left_out_count == 4 - max_ranges
    assert encoded.batches_left_out_count == 1
    again = decode_position_info(encoded.data).individual_deleted_messages
    assert list(again.ranges()) == list(content.individual_deleted_messages.ranges())[:max_ranges]


def test_a_record_with_a_ledger_has_only_the_position():
    data = encode_cursor_record(ragged(), {"k": "v"}, cursor_ledger_id=17, max_ranges=9).data
    info = ManagedCursorInfo.FromString(data)
    assert (info.cursorsLedgerId, info.markDeleteLedgerId, info.markDeleteEntryId) == (17, 5, 2)
    assert not info.individualDeletedMessages
    assert decode_cursor_record(data).cursor_properties == {"k": "v"}


def test_a_record_without_a_ledger_has_everything():
    content = ragged()
    encoded = encode_cursor_record(content, {}, max_ranges=9, max_batches=9)
    record = decode_cursor_record(encoded.data)
    assert record.cursor_ledger_id == -1
    assert record.snapshot.individual_deleted_messages == content.individual_deleted_messages
    assert len(record.snapshot.batch_deleted_indexes) == 2
    assert encode_cursor_record(content, {}, max_ranges=1).ranges_left_out_count == 3


def test_ranges_over_ledgers_in_old_records_are_cut():
    info = PositionInfo(ledgerId=3, entryId=1)
    stored = info.individualDeletedMessages.add()
    stored.lowerEndpoint.ledgerId, stored.lowerEndpoint.entryId = 3, 7
    stored.upperEndpoint.ledgerId, stored.upperEndpoint.entryId = 5, 2
    again = decode_position_info(info.SerializeToString())
    assert str(again.individual_deleted_messages) == "[(5:-1..5:2]]"


def test_ranges_win_over_words():
    info = PositionInfo(ledgerId=3, entryId=1)
    stored = info.individualDeletedMessages.add()
    stored.lowerEndpoint.ledgerId = stored.upperEndpoint.ledgerId = 3
    stored.lowerEndpoint.entryId, stored.upperEndpoint.entryId = 4, 5
    info.individualDeletedMessageRanges.add(key=3, values=[255])
    again = decode_position_info(info.SerializeToString())
    assert str(again.individual_deleted_messages) == "[(3:4..3:5]]"


def test_what_makes_no_sense_is_refused():
    with pytest.raises(CorruptDataError):
        decode_position_info(b"\xff")
    with pytest.raises(CorruptDataError):
        decode_cursor_record(b"\xff")
