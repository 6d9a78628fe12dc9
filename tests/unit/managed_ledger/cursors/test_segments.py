"""Segments and markers: they read back, and foreign ones are refused."""

import pytest

from pulsar_py.common.errors import CorruptDataError, FormatVersionError
from pulsar_py.common.position import Position
from pulsar_py.managed_ledger.cursors.format import CursorSnapshot, decode_position_info
from pulsar_py.managed_ledger.cursors.segments import (
    Marker,
    SegmentKey,
    SegmentKind,
    SegmentRef,
    StoredSegment,
    add_segment,
    changed_content,
    decode_entry,
    encode_marker,
    encode_segment,
    encode_stored,
    live_refs,
    ranges_count,
    segment_keys,
)
from pulsar_py.proto.PulsarPyCursor_pb2 import CursorExtension


def ragged():
    content = CursorSnapshot(Position(5, 2), properties={"n": 7})
    for entry_id in (*range(4, 3000, 2), 70_000):
        content.individual_deleted_messages.add(Position(5, entry_id))
    content.individual_deleted_messages.add(Position(7, 1))
    for entry_id in (5, 4097):
        content.batch_deleted_indexes.put(Position(5, entry_id), 0b101)
    return content


def test_a_state_is_cut_into_pages():
    assert segment_keys(ragged()) == [
        SegmentKey(SegmentKind.HOLES, 5, 0),
        SegmentKey(SegmentKind.HOLES, 5, 1),
        SegmentKey(SegmentKind.HOLES, 7, 0),
        SegmentKey(SegmentKind.BATCHES, 5, 0),
        SegmentKey(SegmentKind.BATCHES, 5, 1),
    ]


def test_segments_read_back():
    content, again = ragged(), CursorSnapshot(Position(5, 2))
    for key in segment_keys(content):
        data, ref = encode_segment(content, key)
        segment = decode_entry(data)
        assert segment.key == key
        assert ref.size_bytes == len(segment.data)
        assert decode_entry(encode_stored(content, segment)) == segment
        assert add_segment(again, segment) == []
    assert again.individual_deleted_messages == content.individual_deleted_messages
    assert list(again.batch_deleted_indexes.items()) == list(content.batch_deleted_indexes.items())
    assert encode_segment(content, SegmentKey(SegmentKind.HOLES, 8, 0)) is None


def test_a_marker_reads_back_and_is_a_state_for_apache_pulsar():
    content = ragged()
    refs = {
        key: SegmentRef(place, place + 1, place + 2, 1 << 40)
        for place, key in enumerate(segment_keys(content))
    }
    data = encode_marker(content, refs)
    marker = decode_entry(data)
    assert isinstance(marker, Marker)
    assert marker.refs == refs
    assert marker.snapshot.mark_delete_position == Position(5, 2)
    assert marker.snapshot.properties == {"n": 7}
    assert not marker.snapshot.individual_deleted_messages
    there = decode_position_info(data)
    assert there.individual_deleted_messages.ranges_count() == 500
    assert there.properties == {"n": 7}
    assert ranges_count(refs.values()) == 20


def test_a_segment_is_a_position_for_apache_pulsar():
    data, _ = encode_segment(ragged(), SegmentKey(SegmentKind.HOLES, 5, 0))
    assert decode_position_info(data).mark_delete_position == Position(5, 2)


def test_only_chosen_pages_are_taken():
    part = changed_content(ragged(), [SegmentKey(0, 5, 1), SegmentKey(1, 5, 0)])
    assert str(part.individual_deleted_messages) == "[(5:69999..5:70000]]"
    assert [str(position) for position, _ in part.batch_deleted_indexes.items()] == ["5:5"]
    assert part.properties == {"n": 7}


def test_refs_below_the_position_are_dropped():
    ref = SegmentRef(0, 1, 1, 1)
    refs = dict.fromkeys(segment_keys(ragged()), ref)
    assert list(live_refs(refs, Position(5, 65_535))) == [SegmentKey(0, 5, 1), SegmentKey(0, 7, 0)]


@pytest.mark.parametrize(
    ("kind", "page", "version", "error"),
    [
        (0, 0, 2, FormatVersionError),
        (2, 0, 1, CorruptDataError),
        (0, -1, 1, CorruptDataError),
    ],
)
def test_foreign_segments_are_refused(kind, page, version, error):
    extension = CursorExtension()
    extension.segment.version, extension.segment.kind = version, kind
    extension.segment.ledgerId, extension.segment.page, extension.segment.data = 5, page, b""
    with pytest.raises(error):
        decode_entry(extension.SerializeToString())


def test_lists_that_do_not_match_are_refused():
    data = encode_marker(ragged(), {})
    extension = CursorExtension()
    extension.segments.version = 1
    extension.segments.kind.append(0)
    with pytest.raises(CorruptDataError):
        decode_entry(data + extension.SerializeToString())
    with pytest.raises(CorruptDataError):
        decode_entry(b"\xff")


def test_a_bitmap_that_makes_no_sense_is_refused():
    segment = StoredSegment(SegmentKey(SegmentKind.HOLES, 5, 0), b"\x00" * 9)
    with pytest.raises(CorruptDataError):
        add_segment(ragged(), segment)
