"""The stored form of a large cursor: segments, and the marker that lists them.

A state that does not fit one entry is cut into pages, and each page is an entry of its own:

    kind      page of        data
    HOLES     65,536 entries roaring bitmap (portable form) of the acknowledged entries' ids
    BATCHES   4,096 entries  packed bit sets of partly acknowledged batches

A save writes the pages that changed, then one marker, which lists the segments of all pages by
their entries' ids in the same cursor ledger. A state counts only from its marker on: segments after
the last marker belong to a save that was cut off, and readers step back over them.

While clients ask for receipts of acknowledgements, changes of any state are written as entries of
their own: the entries acknowledged since the last write, whole or in part. They add to the last
state before them.

All these entries are a `PositionInfo` with an extra field, `CursorExtension` in
PulsarPyCursor.proto, that Apache Pulsar skips: of a segment it reads the mark-delete position and
the properties, of a marker those and the lowest ranges, of changes those and now and then the
lowest ranges, so at worst it delivers messages again. Readers here use only the position and
properties, and what is in the extra field.

What always holds: a segment may be older than the mark-delete position of a later marker, and hold
entries at or below it; readers leave those out. It may also hold a batch that the HOLES segment of
the same entries acknowledges as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import NamedTuple

from google.protobuf.message import DecodeError
from msgspec import Struct

from pulsar_py.common.errors import CorruptDataError, FormatVersionError
from pulsar_py.common.position import Position
from pulsar_py.common.position_ranges import PositionRangeSet
from pulsar_py.managed_ledger.cursors import batch_deleted_indexes
from pulsar_py.managed_ledger.cursors.format import (
    CursorContent,
    CursorSnapshot,
    decode_position_info,
    encode_position_info,
)
from pulsar_py.proto.PulsarPyCursor_pb2 import CursorChanges, CursorExtension, CursorSegment

VERSION = 1
MAX_SEGMENT_BYTES = 4 * 1024 * 1024
"""The most bytes of one segment, enough for a hundred batches of the largest size. (An entry may
have 5 MiB.)"""

MARKER_RANGES = 500
"""Ranges that a marker repeats for Apache Pulsar; about 12 KB."""


SHOWN_RANGES = 300
"""Ranges that an entry with changes repeats for Apache Pulsar; below 8 KB."""


class SegmentKind(IntEnum):
    """The kind of data in a segment."""

    HOLES = 0
    BATCHES = 1


PAGE_SHIFTS = (16, batch_deleted_indexes.PAGE_SHIFT)
"""The shift of each kind: a page has `1 << shift` entries. A page of HOLES has as many as one
container of a roaring bitmap."""


class SegmentKey(NamedTuple):
    """Names one page of a cursor's state."""

    kind: int
    ledger_id: int  # of the data
    page: int

    @property
    def last_position(self) -> Position:
        """The last position of the page."""
        return Position(self.ledger_id, ((self.page + 1) << PAGE_SHIFTS[self.kind]) - 1)


class SegmentRef(NamedTuple):
    """The place of a page's newest segment, and the counts of its data."""

    entry_id: int  # in the cursor ledger
    entries_count: int
    ranges_count: int  # 0 for batches
    size_bytes: int


class StoredSegment(NamedTuple):
    """A segment as it was read from storage."""

    key: SegmentKey
    data: bytes


class Marker(Struct, frozen=True):
    """A marker as it was read from storage."""

    snapshot: CursorSnapshot  # without any acknowledgements above the mark-delete position
    refs: dict[SegmentKey, SegmentRef]


class StoredChanges(Struct, frozen=True):
    """Changes as they were read from storage."""

    snapshot: CursorSnapshot  # with the acknowledgements that they add


def holes_key(position: Position) -> SegmentKey:
    """The page of HOLES for a position."""
    page = position.entry_id >> PAGE_SHIFTS[SegmentKind.HOLES]
    return SegmentKey(SegmentKind.HOLES, position.ledger_id, page)


def segment_keys(content: CursorContent) -> list[SegmentKey]:
    """All pages of a state, ascending within each kind."""
    deleted = content.individual_deleted_messages
    keys = [
        SegmentKey(SegmentKind.HOLES, ledger_id, number)
        for ledger_id in deleted.ledger_ids()
        for number in deleted.page_numbers(ledger_id, PAGE_SHIFTS[SegmentKind.HOLES])
    ]
    pages = content.batch_deleted_indexes.page_keys()
    return keys + [SegmentKey(SegmentKind.BATCHES, *page) for page in pages]


def encode_segment(
    content: CursorContent, key: SegmentKey, max_bytes: int | None = None
) -> tuple[bytes, SegmentRef] | None:
    """The entry for one page, and its ref without the entry id yet; None for an empty page.

    With `max_bytes` the highest batches are left out of an entry that would be larger.
    """
    if key.kind == SegmentKind.HOLES:
        page = content.individual_deleted_messages.page(
            key.ledger_id, key.page, PAGE_SHIFTS[SegmentKind.HOLES]
        )
        data, entries_count, ranges_count = page
    else:
        batches = content.batch_deleted_indexes
        data, entries_count = batches.encode_page((key.ledger_id, key.page), max_bytes)
        ranges_count = 0
    if not entries_count:
        return None
    entry = _segment_entry(content, key, data)
    return entry, SegmentRef(-1, entries_count, ranges_count, len(data))


def encode_stored(content: CursorContent, segment: StoredSegment) -> bytes:
    """The entry for a stored segment that is copied to another ledger."""
    return _segment_entry(content, segment.key, segment.data)


def changed_content(content: CursorContent, keys: Iterable[SegmentKey]) -> CursorSnapshot:
    """The given pages of a state, with its mark-delete position and properties."""
    found = CursorSnapshot(content.mark_delete_position, properties=dict(content.properties))
    for key in keys:
        encoded = encode_segment(content, key)
        if encoded is not None:
            part = decode_entry(encoded[0])
            assert isinstance(part, StoredSegment)
            add_segment(found, part)
    return found


def _segment_entry(content: CursorContent, key: SegmentKey, data: bytes) -> bytes:
    extension = CursorExtension()
    _fill_segment(extension.segment, key, data)
    return _readable(content, 0) + extension.SerializeToString()


def _fill_segment(segment: CursorSegment, key: SegmentKey, data: bytes) -> None:
    segment.version, segment.kind = VERSION, key.kind
    segment.ledgerId, segment.page, segment.data = key.ledger_id, key.page, data


def _readable(content: CursorContent, max_ranges: int) -> bytes:
    """The part of an entry that Apache Pulsar reads: position, properties and the lowest ranges."""
    shown = PositionRangeSet()
    if max_ranges:
        shown = content.individual_deleted_messages.lowest(
            max_ranges, PAGE_SHIFTS[SegmentKind.HOLES]
        )
    return encode_position_info(
        CursorSnapshot(content.mark_delete_position, shown, properties=content.properties),
        max_ranges=max_ranges,
        max_batches=0,
        as_long_arrays=False,
    ).data


def encode_changes(changes: CursorSnapshot, content: CursorContent, *, shows_ranges: bool) -> bytes:
    """The entry with changes of a state, which is `content` by now.

    With `shows_ranges` it has as many of all ranges as fit, too, for Apache Pulsar.
    """
    extension = CursorExtension()
    stored = extension.changes
    stored.version = VERSION
    for ledger_id in changes.individual_deleted_messages.ledger_ids():
        stored.ledgerId.append(ledger_id)
        stored.holes.append(changes.individual_deleted_messages.serialized(ledger_id))
    for page in changes.batch_deleted_indexes.page_keys():
        data, _ = changes.batch_deleted_indexes.encode_page(page)
        _fill_segment(stored.batches.add(), SegmentKey(SegmentKind.BATCHES, *page), data)
    return _readable(content, SHOWN_RANGES if shows_ranges else 0) + extension.SerializeToString()


def encode_marker(content: CursorContent, refs: Mapping[SegmentKey, SegmentRef]) -> bytes:
    """The entry that lists the segments of a state, and so completes its save."""
    extension = CursorExtension()
    listed = extension.segments
    listed.version = VERSION
    listed.kind.extend([key.kind for key in refs])
    listed.ledgerId.extend([key.ledger_id for key in refs])
    listed.page.extend([key.page for key in refs])
    listed.entryId.extend([ref.entry_id for ref in refs.values()])
    listed.entriesCount.extend([ref.entries_count for ref in refs.values()])
    listed.rangesCount.extend([ref.ranges_count for ref in refs.values()])
    listed.sizeBytes.extend([ref.size_bytes for ref in refs.values()])
    return _readable(content, MARKER_RANGES) + extension.SerializeToString()


def decode_entry(data: bytes) -> CursorSnapshot | Marker | StoredSegment | StoredChanges:
    """Read one entry of a cursor ledger: a state, a segment, a marker or changes.

    Raises:
        CorruptDataError: It is malformed.
        FormatVersionError: It is of another version.
    """
    extension = CursorExtension()
    try:
        extension.ParseFromString(data)
    except DecodeError as error:
        raise CorruptDataError(f"cursor state can't be read: {error}") from error
    if extension.HasField("segment"):
        segment = extension.segment
        _check_version(segment.version)
        key = _key(segment.kind, segment.ledgerId, segment.page)
        return StoredSegment(key, segment.data)
    snapshot = decode_position_info(data)
    if extension.HasField("changes"):
        return _decode_changes(snapshot, extension.changes)
    if not extension.HasField("segments"):
        return snapshot
    _check_version(extension.segments.version)
    listed = extension.segments
    columns = (listed.entryId, listed.entriesCount, listed.rangesCount, listed.sizeBytes)
    if len({len(each) for each in (listed.kind, listed.ledgerId, listed.page, *columns)}) != 1:
        raise CorruptDataError("cursor state can't be read: its list of segments is malformed")
    keys = map(_key, listed.kind, listed.ledgerId, listed.page)
    refs = dict(zip(keys, map(SegmentRef, *columns), strict=True))
    bare = CursorSnapshot(snapshot.mark_delete_position, properties=snapshot.properties)
    return Marker(bare, refs)


def _decode_changes(snapshot: CursorSnapshot, stored: CursorChanges) -> StoredChanges:
    _check_version(stored.version)
    if len(stored.ledgerId) != len(stored.holes):
        raise CorruptDataError("cursor state can't be read: its changes are malformed")
    changes = CursorSnapshot(snapshot.mark_delete_position, properties=snapshot.properties)
    for ledger_id, holes in zip(stored.ledgerId, stored.holes, strict=True):
        key = SegmentKey(SegmentKind.HOLES, ledger_id, 0)  # they are of all pages
        add_segment(changes, StoredSegment(key, holes))
    for part in stored.batches:
        _check_version(part.version)
        key = _key(part.kind, part.ledgerId, part.page)
        add_segment(changes, StoredSegment(key, part.data))
    return StoredChanges(changes)


def _check_version(found: int) -> None:
    if found != VERSION:
        raise FormatVersionError("cursor ledger", "segment of a cursor", found, VERSION)


def _key(kind: int, ledger_id: int, page: int) -> SegmentKey:
    if kind not in (SegmentKind.HOLES, SegmentKind.BATCHES) or page < 0:
        raise CorruptDataError(
            f"cursor state can't be read: unknown kind {kind} of segment, or negative page {page}"
        )
    return SegmentKey(kind, ledger_id, page)


def add_segment(content: CursorContent, segment: StoredSegment) -> list[Position]:
    """Add a segment's data to a state; returns the batches that are then acknowledged as a whole.

    Raises:
        CorruptDataError: It is malformed.
    """
    key, data = segment
    if key.kind == SegmentKind.BATCHES:
        return content.batch_deleted_indexes.merge_page((key.ledger_id, key.page), data)
    try:
        content.individual_deleted_messages.add_serialized(key.ledger_id, data)
    except ValueError as error:
        raise CorruptDataError(f"cursor state can't be read: {error}") from error
    return []


def live_refs(
    refs: Mapping[SegmentKey, SegmentRef], mark_delete: Position
) -> dict[SegmentKey, SegmentRef]:
    """The segments of pages that reach above the mark-delete position."""
    return {key: ref for key, ref in refs.items() if key.last_position > mark_delete}


def ranges_count(refs: Iterable[SegmentRef]) -> int:
    """Ranges in all segments together; one that spans two pages counts twice."""
    return sum(ref.ranges_count for ref in refs)
