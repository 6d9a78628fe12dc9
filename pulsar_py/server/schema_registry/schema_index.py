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

from google.protobuf.message import DecodeError

from pulsar_py.common.varint import varint
from pulsar_py.proto.PulsarPySchema_pb2 import MarkedIndexEntry, MarkedSchemaLocator
from pulsar_py.server.schema_registry.definition import SchemaDefinition, StoredSchema
from pulsar_py.server.schema_registry.validation import comparable

_MARK_BYTES = 8
_HASH_BYTES: Final = 32

_INFO_TAG: Final = b"\x0a"
_INDEX_TAG: Final = b"\x12"
_SHORT: Final = 0x7F
"""The largest size of one byte; entries are shorter."""
_SHORTER_BYTES: Final = 16
"""So much shorter than the newest entry others are on average, at most."""
_SIZES_DIFFER_BYTES: Final = 1024

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

    __slots__ = ("_info", "_numbers", "_parsed", "first_live", "locator_version", "value")

    def __init__(self, value: bytes, locator_version: int) -> None:
        """Take a locator's value, which has this version in the metadata store."""
        # Kept to be compared: a locator that was removed and made anew may have the same version.
        self.value = value
        self.locator_version = locator_version
        self._numbers: _Numbers | None = None  # live ones, by hash and by mark
        # Both None until the first use. Of a large one that only few versions are asked of.
        self._parsed: MarkedSchemaLocator | None = None
        self._info = None if _may_have_deletion(value) else _info_of(value)
        self.first_live = 0
        """The first version after the last deletion, which has no hash."""
        if self._info is None:
            entries = self.entries
            for number in range(len(entries) - 1, -1, -1):
                if not entries[number].hash:
                    self.first_live = number + 1
                    break

    @property
    def _locator(self) -> MarkedSchemaLocator:
        if self._parsed is None:
            self._parsed = MarkedSchemaLocator.FromString(self.value)
            self._parsed.ClearField("room")
        return self._parsed

    @property
    def is_parsed(self) -> bool:
        """Whether all versions were parsed; few are asked for of most."""
        return self._parsed is not None

    @property
    def entries(self) -> Sequence[MarkedIndexEntry]:
        """All versions; to parse 10,000 takes some milliseconds."""
        return self._locator.index

    def entry(self, version: int) -> MarkedIndexEntry:
        """One version that there is; at once, even of a large index that was just read."""
        if self._parsed is None:
            if self._info is not None and self._info.version == version:
                return self._info
            found = _entry_in(self.value, version)
            if found is not None:
                return found
        return self.entries[version]

    def __len__(self) -> int:
        """How many versions there are, deletions too."""
        if self._parsed is None and self._info is not None:
            return self._info.version + 1
        return len(self.entries)

    @property
    def latest(self) -> int | None:
        """The newest version, None after a deletion."""
        return len(self) - 1 if self.first_live < len(self) else None

    @property
    def live(self) -> range:
        """The versions after the last deletion."""
        return range(self.first_live, len(self))

    def candidates(self, definition: SchemaDefinition) -> list[int]:
        """The live versions that may equal a definition, ascending; of marked ones, all that do."""
        numbers = self._by_hash_and_mark()
        found = {*numbers.of(definition.sha256), *numbers.of(mark_of(definition))}
        return sorted(found)

    def unmarked(self) -> list[int]:
        """The live versions without a mark, ascending."""
        return self._by_hash_and_mark().of(0)

    def mark(self, definitions: Sequence[StoredSchema]) -> None:
        """Mark versions whose definitions were read; it is written with the next version."""
        numbers = self._by_hash_and_mark()
        unmarked = set(numbers.of(0))
        for stored in definitions:
            if stored.version in unmarked:
                unmarked.remove(stored.version)
                mark = self.entries[stored.version].mark = mark_of(stored.definition)
                numbers.note(mark, stored.version)
        numbers.set(0, sorted(unmarked))

    def _by_hash_and_mark(self) -> _Numbers:
        if self._numbers is None:
            entries = self.entries[self.first_live :]
            self._numbers = _Numbers()
            self._numbers.note_all([entry.hash for entry in entries], self.first_live)
            self._numbers.note_all([entry.mark for entry in entries], self.first_live)
        return self._numbers

    def with_next(self, stored: StoredSchema, ledger_id: int) -> MarkedSchemaLocator:
        """The locator with one more version, entry 0 of this ledger."""
        return _with_next(self._locator, stored, ledger_id)

    def on_written(self, locator: MarkedSchemaLocator, value: bytes, locator_version: int) -> None:
        """Take over a locator of `with_next` that was written as this value and version."""
        self._parsed = locator
        self.value, self.locator_version = value, locator_version
        number = len(self.entries) - 1
        if not self.entries[number].hash:
            self.first_live = number + 1
            self._numbers = None
        elif self._numbers is not None:
            entry = self.entries[number]
            self._numbers.note(entry.hash, number)
            self._numbers.note(entry.mark, number)


class _Numbers:
    """Versions by hash and by mark; nearly all of these have one alone."""

    __slots__ = ("_first", "_more")

    def __init__(self) -> None:
        self._first: dict[bytes | int, int] = {}
        self._more: dict[bytes | int, list[int]] = {}

    def of(self, key: bytes | int) -> list[int]:
        """The versions with this key, in the order in which they were noted."""
        first = self._first.get(key)
        return [] if first is None else [first, *self._more.get(key, ())]

    def note(self, key: bytes | int, number: int) -> None:
        """Note one version."""
        if self._first.setdefault(key, number) != number:
            self._more.setdefault(key, []).append(number)

    def note_all(self, keys: Sequence[bytes | int], start: int) -> None:
        """Note versions from `start` on, of keys that none had before."""
        before = len(self._first)
        self._first.update(zip(reversed(keys), range(start + len(keys) - 1, -1, -1), strict=False))
        if len(self._first) - before < len(keys):
            for number, key in enumerate(keys, start):
                self.note(key, number)

    def set(self, key: bytes | int, numbers: Sequence[int]) -> None:
        """Note exactly these."""
        self._first.pop(key, None)
        self._more.pop(key, None)
        for number in numbers:
            self.note(key, number)


def _may_have_deletion(value: bytes) -> bool:
    """Whether a locator may have a version without a hash; without one it hardly ever seems so.

    To look at each of 10,000 parsed versions takes longer than to parse them. All who write
    locators write the fields of a message in the order of their numbers.
    """
    return any(
        _ENTRY_ID.search(value, max(found.start() - _ENTRY_ID_BYTES, 0), found.start())
        for found in _NO_HASH.finditer(value)
    )


def _info_of(value: bytes) -> MarkedIndexEntry | None:
    """The newest version, which is the first field; None if it is not written as usual."""
    if value[:1] != _INFO_TAG or value[1] > _SHORT:
        return None
    return _parsed_entry(value[2 : 2 + value[1]])


def _entry_in(value: bytes, version: int) -> MarkedIndexEntry | None:
    """One version of a locator, found by its bytes; None if that does not tell.

    Entries before it are about as long as the newest one, or shorter for lower numbers and a mark
    that is not there. What seems to be an entry and is part of a hash is none when it is parsed.
    """
    wanted = b"\x08" + varint(version) + b"\x12"
    first = size = 2 + value[1]  # behind the newest one, which is there twice
    found: list[MarkedIndexEntry] = []
    end = first + (version + 1) * size + _SIZES_DIFFER_BYTES
    at = value.find(wanted, first + version * max(size - _SHORTER_BYTES, 0), end)
    while at >= 0:
        length = value[at - 1]
        if value[at - 2 : at - 1] == _INDEX_TAG and length <= _SHORT:
            entry = _parsed_entry(value[at : at + length])
            if entry is not None and len(entry.hash) == _HASH_BYTES:
                found.append(entry)
        at = value.find(wanted, at + 1, end)
    return found[0] if len(found) == 1 else None


def _parsed_entry(data: bytes) -> MarkedIndexEntry | None:
    try:
        entry = MarkedIndexEntry.FromString(data)
    except DecodeError:
        return None
    return entry if entry.IsInitialized() else None


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
