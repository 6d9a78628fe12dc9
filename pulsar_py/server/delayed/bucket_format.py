"""The stored form of a bucket of the delayed index, which is Apache Pulsar's (pure).

A bucket is a ledger that is written once:

    entry 0        SnapshotMetadata: for each segment its latest and earliest time, and a roaring
                   bitmap (portable format, run-optimised) of its entry ids for each data ledger
    entries 1..n   SnapshotSegment: indexes {time, ledger, entry}, in that order

A segment ends at a count of indexes, or before an index that lies a step or more after its first.
Unreadable entries are CorruptDataError; the messages of such a bucket are read in the topic again.

In memory an index is one integer, `time << 96 | ledger << 32 | entry`: its order is the stored one,
and it takes a third of a tuple's memory.

Source: DelayedMessageIndexBucketMetadata.proto, DelayedMessageIndexBucketSegment.proto,
MutableBucket.createImmutableBucketAndAsyncPersistent in Pulsar's broker; PIP-195.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from typing import Final

from google.protobuf.message import DecodeError
from msgspec import Struct, field
from pyroaring import BitMap

from pulsar_py.common.errors import CorruptDataError
from pulsar_py.common.position import Position
from pulsar_py.common.position_ranges import PositionRangeSet
from pulsar_py.common.varint import varint
from pulsar_py.proto.DelayedMessageIndexBucketMetadata_pb2 import (
    SnapshotMetadata,
    SnapshotSegmentMetadata,
)
from pulsar_py.proto.DelayedMessageIndexBucketSegment_pb2 import SnapshotSegment

_ENTRY_BITS: Final = 32
_TIME_SHIFT: Final = 96
_ENTRY_MASK: Final = (1 << _ENTRY_BITS) - 1
_LEDGER_MASK: Final = (1 << 64) - 1
_LAST_SECOND: Final = (1 << 32) - 1  # what a segment's start is kept in

INDEX_BYTES: Final = 60
"""What an index in memory costs: the integer and its place in a list."""


def pack(deliver_at_millis: int, ledger_id: int, entry_id: int) -> int:
    """One index as an integer."""
    return deliver_at_millis << _TIME_SHIFT | ledger_id << _ENTRY_BITS | entry_id


def time_of(index: int) -> int:
    """The delivery time of an index, in milliseconds."""
    return index >> _TIME_SHIFT


def position_of(index: int) -> Position:
    """The position of an index."""
    return Position(index >> _ENTRY_BITS & _LEDGER_MASK, index & _ENTRY_MASK)


class BucketContent(Struct):
    """What is known of a bucket without its segments.

    Attributes:
        members: Its entries.
        segment_starts: The earliest time of each segment, in whole seconds rounded down.
    """

    members: PositionRangeSet = field(default_factory=PositionRangeSet)
    segment_starts: array[int] = field(default_factory=lambda: array("I"))

    def add_segment(self, start_millis: int) -> None:
        """Note one more segment, whose earliest time this is."""
        self.segment_starts.append(min(start_millis // 1000, _LAST_SECOND))

    @property
    def first_ledger_id(self) -> int:
        """The first data ledger."""
        return self.members.ledger_ids()[0]

    @property
    def last_ledger_id(self) -> int:
        """The last data ledger."""
        return self.members.ledger_ids()[-1]


class NewBucket(Struct):
    """The entries of a bucket that is to be written, and what is in them."""

    content: BucketContent
    metadata: bytes
    segments: list[bytes]


class BucketBuilder:
    """Makes buckets of indexes that come in order; usually one."""

    def __init__(
        self, *, max_segment_indexes: int, max_step_millis: int, max_metadata_bytes: int
    ) -> None:
        """A bucket ends before its entry 0 is larger than `max_metadata_bytes`."""
        self._max_segment_indexes = max_segment_indexes
        self._max_step_millis = max_step_millis
        self._max_metadata_bytes = max_metadata_bytes
        self._buckets: list[NewBucket] = []
        self._content = BucketContent()
        self._metadata = bytearray()
        self._segments: list[bytes] = []
        self._segment: list[int] = []
        self._segment_end_millis = 0  # an index at or after it begins the next segment

    def add(self, index: int) -> None:
        """Add one index, which is not before any added earlier."""
        deliver_at = index >> _TIME_SHIFT
        if self._segment and (
            deliver_at >= self._segment_end_millis
            or len(self._segment) >= self._max_segment_indexes
        ):
            self._end_segment()
        if not self._segment:
            self._segment_end_millis = deliver_at + self._max_step_millis
        self._segment.append(index)

    def _end_segment(self) -> None:
        segment, self._segment = self._segment, []
        stored, bitmaps = _encoded_metadata(segment)
        framed = b"\x0a" + varint(len(stored)) + stored
        if self._metadata and len(self._metadata) + len(framed) > self._max_metadata_bytes:
            self._end_bucket()
        self._metadata += framed
        self._segments.append(encode_segment(segment))
        self._content.add_segment(time_of(segment[0]))
        for ledger_id, bitmap in bitmaps:
            self._content.members.add_serialized(ledger_id, bitmap)

    def _end_bucket(self) -> None:
        self._buckets.append(NewBucket(self._content, bytes(self._metadata), self._segments))
        self._content, self._metadata, self._segments = BucketContent(), bytearray(), []

    def finish(self) -> list[NewBucket]:
        """The buckets of all that was added."""
        if self._segment:
            self._end_segment()
        if self._segments:
            self._end_bucket()
        return self._buckets


def _encoded_metadata(segment: list[int]) -> tuple[bytes, list[tuple[int, bytes]]]:
    """The metadata of a segment, and its bitmaps by ledger."""
    entries: dict[int, list[int]] = {}
    for index in segment:
        entries.setdefault(index >> _ENTRY_BITS & _LEDGER_MASK, []).append(index & _ENTRY_MASK)
    bitmaps = [(ledger_id, _serialized(ids)) for ledger_id, ids in sorted(entries.items())]
    metadata = SnapshotSegmentMetadata(
        delayed_index_bit_map=dict(bitmaps),
        max_schedule_timestamp=time_of(segment[-1]),
        min_schedule_timestamp=time_of(segment[0]),
    )
    return metadata.SerializeToString(deterministic=True), bitmaps


def _serialized(entry_ids: list[int]) -> bytes:
    bitmap = BitMap(entry_ids)
    bitmap.run_optimize()
    return bytes(bitmap.serialize())


def encode_segment(indexes: Iterable[int]) -> bytes:
    """One entry of indexes."""
    segment = SnapshotSegment()
    add = segment.indexes.add
    for index in indexes:
        add(
            timestamp=index >> _TIME_SHIFT,
            ledger_id=index >> _ENTRY_BITS & _LEDGER_MASK,
            entry_id=index & _ENTRY_MASK,
        )
    return segment.SerializeToString()


def decode_segment(data: bytes) -> list[int]:
    """The indexes of a segment.

    Raises:
        CorruptDataError: It is malformed.
    """
    segment = SnapshotSegment()
    try:
        segment.ParseFromString(data)
    except DecodeError as error:
        raise CorruptDataError(f"segment of delayed messages can't be read: {error}") from error
    if not segment.indexes:
        raise CorruptDataError("segment of delayed messages: there is none in it")
    return [
        each.timestamp << _TIME_SHIFT | each.ledger_id << _ENTRY_BITS | each.entry_id
        for each in segment.indexes
    ]


class SegmentSummary:
    """What entry 0 says of one segment."""

    __slots__ = ("bitmaps", "end_millis", "start_millis")

    def __init__(
        self, start_millis: int, end_millis: int, bitmaps: list[tuple[int, bytes]]
    ) -> None:
        self.start_millis = start_millis
        self.end_millis = end_millis
        self.bitmaps = bitmaps  # by ledger, serialized

    def add_to(self, entries: PositionRangeSet) -> None:
        """Add the segment's entries.

        Raises:
            CorruptDataError: A bitmap is malformed.
        """
        for ledger_id, bitmap in self.bitmaps:
            try:
                entries.add_serialized(ledger_id, bitmap)
            except ValueError as error:
                raise CorruptDataError(f"bitmap of ledger {ledger_id}: {error}") from error


def decode_metadata(data: bytes) -> Iterator[SegmentSummary]:
    """What entry 0 says of the segments, in order.

    Raises:
        CorruptDataError: It is malformed.
    """
    metadata = SnapshotMetadata()
    try:
        metadata.ParseFromString(data)
    except DecodeError as error:
        raise CorruptDataError(f"bucket of delayed messages can't be read: {error}") from error
    for each in metadata.metadata_list:
        yield SegmentSummary(
            each.min_schedule_timestamp,
            each.max_schedule_timestamp,
            list(each.delayed_index_bit_map.items()),
        )
