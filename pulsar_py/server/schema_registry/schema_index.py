"""`SchemaIndex`: the versions of one schema id, as its locator names them (pure).

The locator has for each version the SHA-256 of its definition, and a mark of ours: the first eight
bytes of the SHA-256 of the form in which equal definitions are the same bytes (`comparable`). So a
definition is looked for without reading those before it: what has its hash or its mark is read and
compared. Versions that Apache Pulsar wrote have no mark; they are read once, and marked with the
next version that is written.

Apache Pulsar looks for versions in the locator alone, so each new version makes it longer, and it
is one value of the metadata store. Where that writes only what differs of values of equal length, a
large locator has room at its end (`with_room`), an unknown field for Apache Pulsar: so the bytes
that are written grow with the number of versions. ZooKeeper writes the whole value, that is 45 to
56 bytes for each version there is.

Source: BookkeeperSchemaStorage in Pulsar's broker; SchemaStorageFormat.proto.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import Final

from pulsar_py.common.varint import varint
from pulsar_py.proto.PulsarPySchema_pb2 import MarkedIndexEntry, MarkedSchemaLocator
from pulsar_py.server.schema_registry.definition import SchemaDefinition, StoredSchema
from pulsar_py.server.schema_registry.validation import comparable

_MARK_BYTES = 8

ROOM_FROM_BYTES: Final = 8 * 1024
"""Size from which on a locator has room: smaller ones are a page or two."""
_ROOM_PART: Final = 8
_PAGE_BYTES: Final = 4096
_ROOM_TAG: Final = b"\xca\x3e"
"""Number and wire type of the field `room`."""
_LEAST_ROOM_BYTES: Final = len(_ROOM_TAG) + 1

_NO_HASH: Final = re.compile(rb"\x1a\0")
"""An empty field `hash`, or part of something else."""
_ENTRY_ID: Final = re.compile(rb"\x10[\x80-\xff]{0,9}[\0-\x7f]\Z")
"""The field `entryId`, the last of a position, which stands before the hash."""
_ENTRY_ID_BYTES: Final = 11


def hash_of(stored: StoredSchema) -> bytes:
    """What the index has for a version: the SHA-256 of its definition, nothing of a deletion."""
    return b"" if stored.is_deleted else stored.definition.sha256


def mark_of(definition: SchemaDefinition) -> int:
    """A number that equal definitions share, and others hardly ever; never 0."""
    kind, form = comparable(definition)
    digest = hashlib.sha256(b"%d:" % kind + form).digest()
    return int.from_bytes(digest[:_MARK_BYTES]) or 1


class SchemaIndex:
    """The parsed locator of one schema id; versions are numbered from 0 without gaps."""

    __slots__ = ("_locator", "_numbers", "entries", "first_live", "locator_version", "value")

    def __init__(self, value: bytes, locator_version: int) -> None:
        """Parse a locator's value, which has this version in the metadata store."""
        # Kept to be compared: a locator that was removed and made anew may have the same version.
        self.value = value
        self.locator_version = locator_version
        self._locator = MarkedSchemaLocator.FromString(value)
        self._locator.ClearField("room")
        self.entries: Sequence[MarkedIndexEntry] = self._locator.index
        self.first_live = 0
        """The first version after the last deletion, which has no hash."""
        if _may_have_deletion(value):
            for number in range(len(self.entries) - 1, -1, -1):
                if not self.entries[number].hash:
                    self.first_live = number + 1
                    break
        self._numbers: dict[bytes | int, list[int]] | None = None  # live ones, by hash and by mark

    def __len__(self) -> int:
        """How many versions there are, deletions too."""
        return len(self.entries)

    @property
    def latest(self) -> int | None:
        """The newest version, None after a deletion."""
        return len(self.entries) - 1 if self.first_live < len(self.entries) else None

    @property
    def live(self) -> range:
        """The versions after the last deletion."""
        return range(self.first_live, len(self.entries))

    def candidates(self, definition: SchemaDefinition) -> list[int]:
        """The live versions that may equal a definition, ascending; of marked ones, all that do."""
        numbers = self._by_hash_and_mark()
        found = {
            *numbers.get(definition.sha256, ()),
            *numbers.get(mark_of(definition), ()),
        }
        return sorted(found)

    def unmarked(self) -> list[int]:
        """The live versions without a mark, ascending."""
        return self._by_hash_and_mark().get(0, [])

    def mark(self, definitions: Sequence[StoredSchema]) -> None:
        """Mark versions whose definitions were read; it is written with the next version."""
        numbers = self._by_hash_and_mark()
        unmarked = set(numbers.get(0, ()))
        for stored in definitions:
            if stored.version in unmarked:
                unmarked.remove(stored.version)
                mark = self.entries[stored.version].mark = mark_of(stored.definition)
                numbers.setdefault(mark, []).append(stored.version)
        numbers[0] = sorted(unmarked)

    def _by_hash_and_mark(self) -> dict[bytes | int, list[int]]:
        if self._numbers is None:
            self._numbers = {}
            for number in self.live:
                self._note(self._numbers, number)
        return self._numbers

    def _note(self, numbers: dict[bytes | int, list[int]], number: int) -> None:
        entry = self.entries[number]
        numbers.setdefault(entry.hash, []).append(number)
        numbers.setdefault(entry.mark, []).append(number)

    def with_next(self, stored: StoredSchema, ledger_id: int) -> MarkedSchemaLocator:
        """The locator with one more version, entry 0 of this ledger."""
        return _with_next(self._locator, stored, ledger_id)

    def on_written(self, locator: MarkedSchemaLocator, value: bytes, locator_version: int) -> None:
        """Take over a locator of `with_next` that was written as this value and version."""
        self._locator, self.entries = locator, locator.index
        self.value, self.locator_version = value, locator_version
        number = len(self.entries) - 1
        if not self.entries[number].hash:
            self.first_live = number + 1
            self._numbers = None
        elif self._numbers is not None:
            self._note(self._numbers, number)


def _may_have_deletion(value: bytes) -> bool:
    """Whether a locator may have a version without a hash; without one it hardly ever seems so.

    To look at each of 10,000 parsed versions takes longer than to parse them. All who write
    locators write the fields of a message in the order of their numbers.
    """
    return any(
        _ENTRY_ID.search(value, max(found.start() - _ENTRY_ID_BYTES, 0), found.start())
        for found in _NO_HASH.finditer(value)
    )


def first_locator(stored: StoredSchema, ledger_id: int) -> MarkedSchemaLocator:
    """The locator of a schema id's first version."""
    return _with_next(MarkedSchemaLocator(), stored, ledger_id)


def _with_next(
    before: MarkedSchemaLocator, stored: StoredSchema, ledger_id: int
) -> MarkedSchemaLocator:
    locator = MarkedSchemaLocator()
    locator.CopyFrom(before)
    new = locator.index.add(version=stored.version, hash=hash_of(stored))
    new.position.ledgerId, new.position.entryId = ledger_id, 0
    if not stored.is_deleted:
        new.mark = mark_of(stored.definition)
    locator.info.CopyFrom(new)
    return locator


def with_room(value: bytes, size_before: int) -> bytes:
    """The value of a locator with room behind it, in all as long as the one before if it fits.

    Else it becomes an eighth longer than it has to be, so that the lengths are few.
    """
    if len(value) < ROOM_FROM_BYTES:
        return value
    room = size_before - len(value)
    if room < _LEAST_ROOM_BYTES and room != 0:
        wanted = len(value) + len(value) // _ROOM_PART
        room = -(-wanted // _PAGE_BYTES) * _PAGE_BYTES - len(value)
    return value + _room(room)


def _room(size_bytes: int) -> bytes:
    """A field, or two, of exactly this size."""
    if size_bytes == 0:
        return b""
    for header_bytes in range(_LEAST_ROOM_BYTES, size_bytes + 1):
        zeros = size_bytes - header_bytes
        header = _ROOM_TAG + varint(zeros)
        if len(header) == header_bytes:
            return header + bytes(zeros)
        if len(header) < header_bytes:
            break
    return _ROOM_TAG + b"\0" + _room(size_bytes - _LEAST_ROOM_BYTES)
