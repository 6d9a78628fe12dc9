"""`Renumbering`: gives ledgers other ids wherever they are named (pure).

All ids become greater by the same number. So the order stays, ids of ledgers that are gone (a
cursor may stand in one) have a new one too, and no table is needed to go on after a crash. Ids
below 1 are no ledgers' and stay: -1 is "before the first", 0 is that of non-persistent messages.

Where ids stand:

    record of a topic             the list, and where it was terminated
    record of a cursor            its ledger, position, ranges, batches; properties that name
                                  compacted ledgers, buckets, sequence ids; names of buckets
    entry of a cursor ledger      position, ranges, batches, segments, changes; the compacted ledger
    schema: locator and entry     the ledger of each version
    entry of a compacted ledger   the message's id
    bucket of delayed messages    entry 0: bitmaps by ledger; others: an id for each message
    entry of sequence ids         the position of the snapshot
    labels                        how far a compacted ledger goes; the name of a bucket

Fields that are not known here stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar

from google.protobuf.message import DecodeError, Message

from pulsar_py.common.errors import CorruptDataError
from pulsar_py.ledgers import labels
from pulsar_py.managed_ledger.cursors.format import (
    COMPACTED_LEDGER_PROPERTY,
    COMPACTING_LEDGER_PROPERTY,
    COMPACTION_CURSOR,
    DELAYED_BUCKET_PREFIX,
    DELAYED_DOOMED,
    DELAYED_PART_PREFIX,
    INTERNAL_PREFIX,
    SEQUENCE_ID_LEDGERS,
)
from pulsar_py.managed_ledger.log.record_values import decompressed, unknown_fields
from pulsar_py.migration.roles import Role, cursor_of, role_of
from pulsar_py.proto.DelayedMessageIndexBucketMetadata_pb2 import SnapshotMetadata
from pulsar_py.proto.DelayedMessageIndexBucketSegment_pb2 import SnapshotSegment
from pulsar_py.proto.MLDataFormats_pb2 import (
    BatchedEntryDeletionIndexInfo,
    LongProperty,
    ManagedCursorInfo,
    ManagedLedgerInfo,
    MessageRange,
    PositionInfo,
)
from pulsar_py.proto.PulsarApi_pb2 import MessageIdData
from pulsar_py.proto.PulsarPyCursor_pb2 import CursorExtension
from pulsar_py.proto.SchemaStorageFormat_pb2 import IndexEntry, SchemaEntry, SchemaLocator
from pulsar_py.server.compaction.record_format import split_record, with_id

M = TypeVar("M", bound=Message)

_LARGEST: Final = 1 << 63
_SPAN: Final = re.compile(
    re.escape(INTERNAL_PREFIX)
    + f"(?P<kind>{re.escape(DELAYED_BUCKET_PREFIX)}|{re.escape(DELAYED_PART_PREFIX)})"
    + r"(?P<first>\d+)_(?P<last>\d+)(?P<rest>(?:_\d+)?)"
)
_LISTS: Final = {
    INTERNAL_PREFIX + name
    for name in (DELAYED_DOOMED, SEQUENCE_ID_LEDGERS, COMPACTING_LEDGER_PROPERTY)
}


class _Nested(Protocol):
    """A position in a message of protobuf."""

    ledgerId: int  # noqa: N815 - protobuf's name


class _Acknowledgements(Protocol):
    """The fields that an entry of a cursor ledger and a cursor's record share."""

    @property
    def individualDeletedMessages(self) -> Iterable[MessageRange]: ...  # noqa: N802 - protobuf's

    @property
    def batchedEntryDeletionIndexInfo(  # noqa: N802 - protobuf's
        self,
    ) -> Iterable[BatchedEntryDeletionIndexInfo]: ...

    @property
    def properties(self) -> Iterable[LongProperty]: ...


@dataclass(frozen=True, slots=True)
class Renumbering:
    """Adds `offset` to each ledger's id; 0 keeps them, and then every value stays as it is."""

    offset: int = 0

    def ledger_id(self, ledger_id: int) -> int:
        """The new id."""
        is_one = 0 < ledger_id < _LARGEST  # -1 as a number without a sign is beyond
        return ledger_id + self.offset if is_one else ledger_id

    # Records in the metadata

    def topic_record(self, value: bytes) -> bytes:
        """The record of a managed ledger.

        Raises:
            CorruptDataError: It can't be read.
        """
        if not self.offset:
            return value
        info = _parsed(ManagedLedgerInfo(), decompressed(value))
        for ledger in info.ledgerInfo:
            self._shift(ledger)
        if info.HasField("terminatedPosition"):
            self._shift(info.terminatedPosition)
        return info.SerializeToString()

    def cursor_record(self, value: bytes, cursor_name: str) -> bytes:
        """The record of a cursor of that name.

        Raises:
            CorruptDataError: It can't be read.
        """
        if not self.offset:
            return value
        info = _parsed(ManagedCursorInfo(), decompressed(value))
        info.cursorsLedgerId = self.ledger_id(info.cursorsLedgerId)
        if info.HasField("markDeleteLedgerId"):
            info.markDeleteLedgerId = self.ledger_id(info.markDeleteLedgerId)
        self._acknowledgements(info, cursor_name)
        for text in info.cursorProperties:
            text.name, text.value = self.property_text(text.name, text.value)
        return info.SerializeToString()

    def property_text(self, name: str, text: str) -> tuple[str, str]:
        """A text of a cursor, which may name ledgers in its value, and in its name, too."""
        span = _SPAN.fullmatch(name)
        if span is None and name not in _LISTS:
            return name, text
        return self._bucket_name(name), self._decimals(text)

    def _bucket_name(self, name: str) -> str:
        span = _SPAN.fullmatch(name)
        if span is None:
            return name
        first, last = (self.ledger_id(int(span[each])) for each in ("first", "last"))
        return f"{INTERNAL_PREFIX}{span['kind']}{first}_{last}{span['rest']}"

    def _decimals(self, text: str) -> str:
        return ",".join(
            str(self.ledger_id(int(each))) if each.isdecimal() else each for each in text.split(",")
        )

    def schema_locator(self, value: bytes) -> bytes:
        """The record of a topic's schemas.

        Raises:
            CorruptDataError: It can't be read.
        """
        if not self.offset:
            return value
        locator = _parsed(SchemaLocator(), value)
        if locator.HasField("info"):
            self._shift(locator.info.position)
        self._versions(locator.index)
        return locator.SerializeToString()

    # Ledgers

    def labels(self, custom_metadata: Mapping[str, bytes]) -> dict[str, bytes]:
        """The labels of a ledger."""
        new = dict(custom_metadata)
        if not self.offset:
            return new
        if labels.COMPACTED_TO in new:
            message_id = _parsed(MessageIdData(), new[labels.COMPACTED_TO])
            self._shift(message_id)
            new[labels.COMPACTED_TO] = message_id.SerializeToString()
        if labels.BUCKET_KEY in new:
            name = new[labels.BUCKET_KEY].decode(errors="replace")
            new[labels.BUCKET_KEY] = self._bucket_name(name).encode()
        return new

    def entry(self, custom_metadata: Mapping[str, bytes], entry_id: int, data: bytes) -> bytes:
        """One entry of a ledger with these (former) labels.

        Raises:
            CorruptDataError: It can't be read.
        """
        if not self.offset:
            return data
        match role_of(custom_metadata):
            case Role.CURSOR:
                return self._cursor_entry(data, cursor_of(custom_metadata))
            case Role.SEQUENCE_IDS:
                position = _parsed(PositionInfo(), data)
                self._shift(position)
                message: Message = position
            case Role.SCHEMA:
                schema = _parsed(SchemaEntry(), data)
                self._versions(schema.index)
                message = schema
            case Role.DELAYED:
                message = self._bucket_entry(entry_id, data)
            case Role.COMPACTED:
                own, end = split_record(data)
                self._shift(own)
                return with_id(own, data, end)
            case _:
                return data
        return message.SerializeToString(deterministic=True)

    def _cursor_entry(self, data: bytes, cursor_name: str) -> bytes:
        info, extension = PositionInfo(), CursorExtension()
        try:
            info.ParseFromString(data)
            extension.ParseFromString(data)
        except DecodeError:
            return data  # no state: what was put in the place of a lost entry
        unknown = unknown_fields(data, PositionInfo(), CursorExtension())
        for message in (info, extension):
            message.DiscardUnknownFields()
        self._shift(info)
        self._acknowledgements(info, cursor_name)
        for words in info.individualDeletedMessageRanges:
            words.key = self.ledger_id(words.key)
        self._extension(extension)
        return info.SerializeToString() + extension.SerializeToString() + unknown

    def _extension(self, extension: CursorExtension) -> None:
        if extension.HasField("segment"):
            self._shift(extension.segment)
        for name in ("segments", "changes"):
            if extension.HasField(name):
                ids = getattr(extension, name).ledgerId
                ids[:] = [self.ledger_id(each) for each in ids]
        for batch in extension.changes.batches:
            self._shift(batch)

    def _bucket_entry(self, entry_id: int, data: bytes) -> Message:
        if entry_id:
            segment = _parsed(SnapshotSegment(), data)
            for index in segment.indexes:
                index.ledger_id = self.ledger_id(index.ledger_id)
            return segment
        metadata = _parsed(SnapshotMetadata(), data)
        for each in metadata.metadata_list:
            bitmaps = dict(each.delayed_index_bit_map)
            each.delayed_index_bit_map.clear()
            for ledger_id, bitmap in bitmaps.items():
                each.delayed_index_bit_map[self.ledger_id(ledger_id)] = bitmap
        return metadata

    # Parts

    def _shift(self, position: _Nested) -> None:
        position.ledgerId = self.ledger_id(position.ledgerId)

    def _versions(self, index: Iterable[IndexEntry]) -> None:
        for version in index:
            self._shift(version.position)

    def _acknowledgements(self, stored: _Acknowledgements, cursor_name: str) -> None:
        for each in stored.individualDeletedMessages:
            self._shift(each.lowerEndpoint)
            self._shift(each.upperEndpoint)
        for batch in stored.batchedEntryDeletionIndexInfo:
            self._shift(batch.position)
        if cursor_name == COMPACTION_CURSOR:  # elsewhere numbers are sequence ids, by producer
            for number in stored.properties:
                if number.name == COMPACTED_LEDGER_PROPERTY:
                    number.value = self.ledger_id(number.value)


def _parsed(message: M, data: bytes) -> M:
    try:
        message.ParseFromString(data)
    except DecodeError as error:
        name = message.DESCRIPTOR.name
        raise CorruptDataError(f"{len(data)} bytes are no {name}: {error}") from error
    return message
