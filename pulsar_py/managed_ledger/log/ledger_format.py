"""The stored form of a managed ledger: a `ManagedLedgerInfo` under `/managed-ledgers/<name>`.

    ledgerInfo            ids ascend; the last has no entries, size and timestamp while it is open
    terminatedPosition    set once the topic is terminated
    properties            texts, such as the topic's epoch; `pulsar_py.deleting`, which Pulsar
                          does not have, marks a managed ledger whose deletion has begun

The value may be compressed (`record_values`). Fields of offloaded ledgers, and those that are not
known here, are kept as they were.

Source: MLDataFormats.proto, MetaStoreImpl in Pulsar's managed-ledger.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Final
from urllib.parse import quote_plus, unquote_plus

from google.protobuf.message import DecodeError, Message
from google.protobuf.unknown_fields import UnknownFieldSet
from msgspec import Struct, field

from pulsar_py.common.errors import CorruptDataError
from pulsar_py.common.position import Position
from pulsar_py.managed_ledger.log.record_values import decompressed, unknown_fields
from pulsar_py.proto.MLDataFormats_pb2 import ManagedLedgerInfo

ROOT: Final = "/managed-ledgers"

DELETING_PROPERTY: Final = "pulsar_py.deleting"
OWNER_PROPERTY: Final = "pulsar_py.owner"


def ledger_path(name: str) -> str:
    """The path of a managed ledger's record."""
    return f"{ROOT}/{name}"


def cursor_path(name: str, cursor_name: str) -> str:
    """The path of a cursor's record; the name is encoded as by Java's URLEncoder."""
    return f"{ROOT}/{name}/{encode_name(cursor_name)}"


def encode_name(text: str) -> str:
    """A cursor's name as a path segment."""
    return quote_plus(text, safe="*").replace("~", "%7E")


def decode_name(segment: str) -> str:
    """The reverse of `encode_name`."""
    return unquote_plus(segment)


class LedgerRecord(Struct):
    """One ledger of a managed ledger."""

    ledger_id: int
    entries_count: int = 0  # confirmed ones while it is open
    size_bytes: int = 0  # of those entries
    closed_millis: int = 0  # wall time; 0 while open
    is_closed: bool = False
    first_index: int = 0  # entries before it, counted since opening; never renumbered
    stored: ManagedLedgerInfo.LedgerInfo | None = None  # as it was read, for fields not used here


class LedgerList(Struct):
    """The record of a managed ledger."""

    ledgers: list[LedgerRecord] = field(default_factory=list)
    terminated_position: Position | None = None
    properties: dict[str, str] = field(default_factory=dict)
    is_being_deleted: bool = False  # its deletion has begun, so its ledgers do not count
    unknown_fields: bytes = b""  # fields that a newer version wrote; kept as they are
    # Drawn by the owner that wrote it, so that no two owners write the same bytes.
    owner_mark: str = ""


def decode_ledger_list(value: bytes) -> LedgerList:
    """Read the stored form.

    Raises:
        CorruptDataError: It is malformed, or ids do not ascend: then one of them is damaged, and
            the ledger with the true id would be missing from the topic.
    """
    stored = decode_unchecked(value)
    for ledger_id, following in misplaced_ids(stored):
        raise CorruptDataError(
            f"managed ledger record names ledger {following} after ledger {ledger_id}, "
            "but ids have to ascend"
        )
    return stored


def misplaced_ids(stored: LedgerList) -> Iterator[tuple[int, int]]:
    """Neighbours in the list whose ids do not ascend."""
    for one, other in pairwise(stored.ledgers):
        if other.ledger_id <= one.ledger_id:
            yield one.ledger_id, other.ledger_id


def decode_unchecked(value: bytes) -> LedgerList:
    """Read the stored form, without a check of ids and their order.

    Raises:
        CorruptDataError: It is malformed.
    """
    info = ManagedLedgerInfo()
    try:
        plain = decompressed(value)
        info.ParseFromString(plain)
    except DecodeError as error:
        raise CorruptDataError(f"managed ledger record can't be read: {error}") from error
    stored = LedgerList([_record(ledger) for ledger in info.ledgerInfo])
    if info.HasField("terminatedPosition"):
        end = info.terminatedPosition
        stored.terminated_position = Position(end.ledgerId, end.entryId)
    stored.properties = {prop.key: prop.value for prop in info.properties}
    stored.is_being_deleted = stored.properties.pop(DELETING_PROPERTY, None) is not None
    stored.owner_mark = stored.properties.pop(OWNER_PROPERTY, "")
    if _has_unknown(info):
        stored.unknown_fields = unknown_fields(plain, ManagedLedgerInfo())
    return stored


def _has_unknown(message: Message) -> bool:
    return len(UnknownFieldSet(message)) > 0


def is_deletion_begun(value: bytes) -> bool:
    """Whether the stored list is of a managed ledger whose deletion has begun.

    False for a malformed list: opening it raises the error.
    """
    try:
        return decode_unchecked(value).is_being_deleted
    except CorruptDataError:
        return False


def _record(ledger: ManagedLedgerInfo.LedgerInfo) -> LedgerRecord:
    # Apache Pulsar writes the timestamp 0, or none, for the open ledger; closed ones have one.
    return LedgerRecord(
        ledger.ledgerId,
        entries_count=ledger.entries,
        size_bytes=ledger.size,
        closed_millis=ledger.timestamp,
        is_closed=ledger.timestamp > 0,
        stored=ledger
        if ledger.HasField("offloadContext") or ledger.properties or _has_unknown(ledger)
        else None,
    )


def encode_ledger_list(stored: LedgerList) -> bytes:
    """The stored form."""
    info = ManagedLedgerInfo()
    for record in stored.ledgers:
        ledger = info.ledgerInfo.add()
        if record.stored is not None:
            ledger.CopyFrom(record.stored)
        ledger.ledgerId = record.ledger_id
        if record.is_closed:
            ledger.entries = record.entries_count
            ledger.size = record.size_bytes
            ledger.timestamp = record.closed_millis
    if stored.terminated_position is not None:
        info.terminatedPosition.ledgerId = stored.terminated_position.ledger_id
        info.terminatedPosition.entryId = stored.terminated_position.entry_id
    for key, value in stored.properties.items():
        info.properties.add(key=key, value=value)
    if stored.is_being_deleted:
        info.properties.add(key=DELETING_PROPERTY, value="true")
    if stored.owner_mark:
        info.properties.add(key=OWNER_PROPERTY, value=stored.owner_mark)
    return info.SerializeToString() + stored.unknown_fields
