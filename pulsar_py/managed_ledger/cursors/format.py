"""The stored forms of a cursor: `PositionInfo` in its cursor ledger, `ManagedCursorInfo` beside it.

The record `/managed-ledgers/<name>/<cursor>` holds `cursorsLedgerId`. If that is -1, the record has
the whole state; else the last entry of that ledger has it, as a `PositionInfo`, and the record's
mark-delete position is the fallback when the ledger can't be read.

    PositionInfo        ManagedCursorInfo
    ledgerId, entryId   markDelete…         mark-delete position
    3                   4                   ranges (lower, upper] of acknowledged entries
    4                   5                   numbers stored with the position
    5                   7                   batches: words in which a set bit is unacknowledged
    6                   -                   ranges as words: bit e % 64 of word e // 64 is entry e
    -                   8                   texts, the cursor's own properties

Reading takes ranges if there are any, else words; ranges that span ledgers are cut.
A writer can be given a limit of ranges and batches: then the highest positions are left out, and
`Encoded` says how many, so that no acknowledgement is dropped silently.

Source: MLDataFormats.proto; buildIndividualDeletedMessageRanges in ManagedCursorImpl.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Protocol

from google.protobuf.message import DecodeError
from google.protobuf.unknown_fields import UnknownFieldSet
from msgspec import Struct, field

from pulsar_py.common import ack_set
from pulsar_py.common.errors import CorruptDataError
from pulsar_py.common.names import COMPACTION_SUBSCRIPTION
from pulsar_py.common.position import Position
from pulsar_py.common.position_ranges import PositionRangeSet
from pulsar_py.managed_ledger.cursors.batch_deleted_indexes import BatchDeletedIndexes
from pulsar_py.managed_ledger.cursors.pages import ColdLedger
from pulsar_py.managed_ledger.log.record_values import decompressed, unknown_fields
from pulsar_py.proto.MLDataFormats_pb2 import (
    BatchedEntryDeletionIndexInfo,
    ManagedCursorInfo,
    MessageRange,
    PositionInfo,
)
from pulsar_py.proto.PulsarPyCursor_pb2 import CursorExtension

INTERNAL_PREFIX = "#pulsar.internal."
"""The prefix of cursor properties that belong to the broker; users can't set them."""

NO_LEDGER = -1

COMPACTION_CURSOR = COMPACTION_SUBSCRIPTION
"""The cursor that holds a topic's entries until they are compacted."""

COMPACTED_LEDGER_PROPERTY = "CompactedTopicLedger"
"""The property of a compaction's cursor whose value is the id of the topic's compacted ledger."""

COMPACTING_LEDGER_PROPERTY = "compacting-ledger"
"""The internal property that names the compacted ledger which is being written, in decimal."""

DELAYED_BUCKET_PREFIX = "delayed.bucket_"
"""Internal properties that begin so name buckets of the delayed index, as Apache Pulsar does."""

DELAYED_PART_PREFIX = "pulsar-py.delayed-part_"
"""Internal properties that begin so name buckets of the delayed index beside those."""

DELAYED_DOOMED = "pulsar-py.delayed-doomed"
"""The internal property that lists ledgers of former buckets, in decimal, with commas."""

SEQUENCE_ID_LEDGERS = "pulsar-py.sequence-id-ledgers"
"""The internal property of deduplication's cursor that lists ledgers, in decimal, with commas."""

_OWNING_PREFIXES = tuple(
    INTERNAL_PREFIX + each
    for each in (DELAYED_BUCKET_PREFIX, DELAYED_PART_PREFIX, DELAYED_DOOMED, SEQUENCE_ID_LEDGERS)
)


def owned_ledgers(properties: Mapping[str, int], cursor_properties: Mapping[str, str]) -> list[int]:
    """Ids of the ledgers that a cursor's properties name, and that end with it."""
    named = []
    if COMPACTED_LEDGER_PROPERTY in properties:
        named.append(properties[COMPACTED_LEDGER_PROPERTY])
    unfinished = cursor_properties.get(INTERNAL_PREFIX + COMPACTING_LEDGER_PROPERTY, "")
    if unfinished.isdecimal():
        named.append(int(unfinished))
    for name, text in cursor_properties.items():
        if name.startswith(_OWNING_PREFIXES):
            named += [int(each) for each in text.split(",") if each.isdecimal()]
    return named


_MAX_WORDS = 8_192  # about 90 KB; few ranges that lie far apart are shorter as ranges


class CursorContent(Protocol):
    """The stored part of a cursor; `CursorState` and `CursorSnapshot` have it."""

    mark_delete_position: Position
    individual_deleted_messages: PositionRangeSet
    batch_deleted_indexes: BatchDeletedIndexes
    properties: dict[str, int]


class CursorSnapshot(Struct):
    """A cursor's state as it was read from storage."""

    mark_delete_position: Position
    individual_deleted_messages: PositionRangeSet = field(default_factory=PositionRangeSet)
    batch_deleted_indexes: BatchDeletedIndexes = field(default_factory=BatchDeletedIndexes)
    properties: dict[str, int] = field(default_factory=dict)
    is_segmented: bool = False  # it came from segments
    cold: dict[int, ColdLedger] = field(default_factory=dict)  # ledgers that are not read yet
    # (kind, ledger id, page) of segments that lack acknowledgements which the record has.
    added_pages: set[tuple[int, int, int]] = field(default_factory=set)


class CursorRecord(Struct):
    """A cursor's record in the metadata store."""

    cursor_ledger_id: int  # NO_LEDGER: `snapshot` is the whole state
    snapshot: CursorSnapshot
    cursor_properties: dict[str, str]
    adds_to_ledger: bool = False  # `snapshot` and the ledger's state have to be joined
    unknown_fields: bytes = b""  # fields that a newer version wrote; kept as they are


class Encoded(Struct, frozen=True):
    """A stored form, and the number of ranges and batches that did not fit into it."""

    data: bytes
    ranges_left_out_count: int
    batches_left_out_count: int


def encode_position_info(
    content: CursorContent, *, max_ranges: int, max_batches: int, as_long_arrays: bool
) -> Encoded:
    """One entry of a cursor ledger."""
    info = PositionInfo(
        ledgerId=content.mark_delete_position.ledger_id,
        entryId=content.mark_delete_position.entry_id,
    )
    for name, value in content.properties.items():
        info.properties.add(name=name, value=value)
    deleted = content.individual_deleted_messages
    if as_long_arrays and deleted.words_count() <= _MAX_WORDS:
        left_out = _add_words(info, deleted, max_ranges)
    else:
        left_out = _add_ranges(info.individualDeletedMessages, deleted, max_ranges)
    batches_left_out = _add_batches(
        info.batchedEntryDeletionIndexInfo, content.batch_deleted_indexes, max_batches
    )
    return Encoded(info.SerializeToString(), left_out, batches_left_out)


def _add_words(info: PositionInfo, deleted: PositionRangeSet, max_ranges: int) -> int:
    """Add whole ledgers as words; the one that exceeds the limit is cut as ranges are."""
    room = max_ranges
    left_out = 0
    for ledger_id in deleted.ledger_ids():
        count = deleted.ranges_count_in_ledger(ledger_id)
        if count <= room:
            info.individualDeletedMessageRanges.add(key=ledger_id, values=deleted.words(ledger_id))
        else:
            left_out += count - room
            part = PositionRangeSet()
            for kept in islice(deleted.ranges_in_ledger(ledger_id), room):
                part.add_range(*kept)
            if part:
                words = part.words(ledger_id)
                info.individualDeletedMessageRanges.add(key=ledger_id, values=words)
        room = max(0, room - count)
    return left_out


class _Ranges(Protocol):
    """A repeated field of ranges."""

    def add(self) -> MessageRange:
        """A new range at the end."""


class _Batches(Protocol):
    """A repeated field of batches."""

    def add(self) -> BatchedEntryDeletionIndexInfo:
        """A new batch at the end."""


def _add_ranges(target: _Ranges, deleted: PositionRangeSet, max_ranges: int) -> int:
    for ledger_id, first, last in islice(deleted.ranges(), max_ranges):
        stored = target.add()
        stored.lowerEndpoint.ledgerId = stored.upperEndpoint.ledgerId = ledger_id
        stored.lowerEndpoint.entryId = first - 1
        stored.upperEndpoint.entryId = last
    return max(0, deleted.ranges_count() - max_ranges)


def _add_batches(target: _Batches, batches: BatchDeletedIndexes, max_batches: int) -> int:
    if not batches:
        return 0
    for position, bits in islice(batches.items(), max_batches):
        stored = target.add()
        stored.position.ledgerId, stored.position.entryId = position
        stored.deleteSet.extend(ack_set.to_words(bits))
    return max(0, len(batches) - max_batches)


def decode_position_info(data: bytes) -> CursorSnapshot:
    """Read one entry of a cursor ledger.

    Raises:
        CorruptDataError: It is malformed.
    """
    info = PositionInfo()
    try:
        info.ParseFromString(data)
    except DecodeError as error:
        raise CorruptDataError(f"cursor state can't be read: {error}") from error
    snapshot = CursorSnapshot(Position(info.ledgerId, info.entryId))
    snapshot.properties = {stored.name: stored.value for stored in info.properties}
    if info.individualDeletedMessages:
        _take_ranges(snapshot.individual_deleted_messages, info.individualDeletedMessages)
    else:
        for words in info.individualDeletedMessageRanges:
            snapshot.individual_deleted_messages.add_words(words.key, words.values)
    _take_batches(snapshot.batch_deleted_indexes, info.batchedEntryDeletionIndexInfo)
    return snapshot


def _take_ranges(deleted: PositionRangeSet, ranges: Sequence[MessageRange]) -> None:
    for stored in ranges:
        lower, upper = stored.lowerEndpoint, stored.upperEndpoint
        # In old records a range may span ledgers. Where the lower ledger ends is not known here, so
        # its part is dropped: those entries are below the mark-delete position, or are delivered
        # again.
        first = lower.entryId + 1 if lower.ledgerId == upper.ledgerId else 0
        deleted.add_range(upper.ledgerId, max(first, 0), upper.entryId)


def _take_batches(
    batches: BatchDeletedIndexes, stored: Sequence[BatchedEntryDeletionIndexInfo]
) -> None:
    for batch in stored:
        if len(batch.deleteSet) > ack_set.MAX_WORDS:
            continue  # Too large to be written again, so the whole batch is delivered once more.
        if bits := ack_set.to_bits(batch.deleteSet):
            batches.put(Position(batch.position.ledgerId, batch.position.entryId), bits)


def encode_cursor_record(
    content: CursorContent,
    cursor_properties: Mapping[str, str],
    *,
    cursor_ledger_id: int = NO_LEDGER,
    max_ranges: int = 0,
    max_batches: int = 0,
    adds_to_ledger: bool = False,
    unknown: bytes = b"",
) -> Encoded:
    """The metadata record; with a cursor ledger it has only the position, or what it adds."""
    info = ManagedCursorInfo(
        cursorsLedgerId=cursor_ledger_id,
        markDeleteLedgerId=content.mark_delete_position.ledger_id,
        markDeleteEntryId=content.mark_delete_position.entry_id,
    )
    for name, number in content.properties.items():
        info.properties.add(name=name, value=number)
    for name, text in cursor_properties.items():
        info.cursorProperties.add(name=name, value=text)
    if cursor_ledger_id != NO_LEDGER and not adds_to_ledger:
        return Encoded(info.SerializeToString() + unknown, 0, 0)
    left_out = _add_ranges(
        info.individualDeletedMessages, content.individual_deleted_messages, max_ranges
    )
    batches_left_out = _add_batches(
        info.batchedEntryDeletionIndexInfo, content.batch_deleted_indexes, max_batches
    )
    extension = CursorExtension(addsToLedger=True).SerializeToString() if adds_to_ledger else b""
    data = info.SerializeToString() + extension + unknown
    return Encoded(data, left_out, batches_left_out)


def decode_cursor_record(value: bytes) -> CursorRecord:
    """Read the metadata record.

    Raises:
        CorruptDataError: It is malformed.
    """
    info, extension = ManagedCursorInfo(), CursorExtension()
    try:
        plain = decompressed(value)
        info.ParseFromString(plain)
        extension.ParseFromString(plain)
        unknown = b""
        if len(UnknownFieldSet(info)) > 0:
            unknown = unknown_fields(plain, ManagedCursorInfo(), CursorExtension())
    except DecodeError as error:
        raise CorruptDataError(f"cursor record can't be read: {error}") from error
    mark_delete = Position(
        info.markDeleteLedgerId if info.HasField("markDeleteLedgerId") else -1,
        info.markDeleteEntryId if info.HasField("markDeleteEntryId") else -1,
    )
    snapshot = CursorSnapshot(mark_delete)
    snapshot.properties = {stored.name: stored.value for stored in info.properties}
    _take_ranges(snapshot.individual_deleted_messages, info.individualDeletedMessages)
    _take_batches(snapshot.batch_deleted_indexes, info.batchedEntryDeletionIndexInfo)
    texts = {stored.name: stored.value for stored in info.cursorProperties}
    return CursorRecord(info.cursorsLedgerId, snapshot, texts, extension.addsToLedger, unknown)
