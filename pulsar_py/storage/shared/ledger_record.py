"""`LedgerRecord`: the stored state of one ledger: open or closed, its end, its labels (a value).

The journal (for a change) and the index (for the state at a checkpoint) store the same bytes. An
open ledger's entries that follow the record in the journal come after the end in the record.

Layout, big-endian, no padding (the length is stored beside it, by journal and index):

    u8   flags: 1 closed, 2 fenced, 4 deleted (a tombstone)
    u8   ensemble size          u8   write quorum size      u8   ack quorum size
    i64  last entry id, -1 if there is none
    u64  bytes of all entries
    u8   length of the password's SHA-256, 0 or 32, and its bytes
    u16  count of custom metadata; for each
         u16 key length, key in UTF-8, u32 value length, value

Too few or too many bytes are a `CorruptDataError`; the checksum is that of the journal's block or
of the index's page.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from pulsar_py.common.errors import CorruptDataError
from pulsar_py.ledgers.store import LedgerInfo, LedgerOptions

_FIXED = struct.Struct(">BBBBqQB")
_U16 = struct.Struct(">H")
_U32 = struct.Struct(">I")

CLOSED, FENCED, DELETED = 1, 2, 4
DIGEST_SIZES = (0, 32)


class LedgerRecord(Struct, frozen=True):
    """State of one ledger at one moment."""

    is_closed: bool = False
    is_fenced: bool = False
    is_deleted: bool = False
    ensemble_size: int = 1
    write_quorum_size: int = 1
    ack_quorum_size: int = 1
    last_entry_id: int = -1
    length_bytes: int = 0
    password_digest: bytes = b""
    custom_metadata: Mapping[str, bytes] = field(default_factory=dict)

    @classmethod
    def created(cls, options: LedgerOptions) -> LedgerRecord:
        """The record of a new ledger."""
        return cls(
            ensemble_size=options.ensemble_size,
            write_quorum_size=options.write_quorum_size,
            ack_quorum_size=options.ack_quorum_size,
            password_digest=digest(options.password),
            custom_metadata=dict(options.custom_metadata),
        )

    def at(self, last_entry_id: int, length_bytes: int) -> LedgerRecord:
        """The same record with another end."""
        return replace(self, last_entry_id=last_entry_id, length_bytes=length_bytes)

    def closed(self, *, is_fenced: bool, last_entry_id: int, length_bytes: int) -> LedgerRecord:
        """The same record, closed at that end."""
        return replace(
            self,
            is_closed=True,
            is_fenced=is_fenced,
            last_entry_id=last_entry_id,
            length_bytes=length_bytes,
        )

    def info(self, ledger_id: int) -> LedgerInfo:
        """The record as a `LedgerInfo`, without an end while the ledger is open."""
        return LedgerInfo(
            ledger_id=ledger_id,
            is_closed=self.is_closed,
            last_entry_id=self.last_entry_id if self.is_closed else None,
            length_bytes=self.length_bytes if self.is_closed else None,
            custom_metadata=self.custom_metadata,
        )

    def encode(self) -> bytes:
        """The stored form."""
        assert self.last_entry_id >= -1
        assert self.length_bytes >= 0
        assert self.is_closed or not (self.is_fenced or self.is_deleted)
        flags = CLOSED * self.is_closed | FENCED * self.is_fenced | DELETED * self.is_deleted
        parts = [
            _FIXED.pack(
                flags,
                self.ensemble_size,
                self.write_quorum_size,
                self.ack_quorum_size,
                self.last_entry_id,
                self.length_bytes,
                len(self.password_digest),
            ),
            self.password_digest,
            _U16.pack(len(self.custom_metadata)),
        ]
        for key, value in self.custom_metadata.items():
            name = key.encode()
            parts += _U16.pack(len(name)), name, _U32.pack(len(value)), value
        return b"".join(parts)

    @classmethod
    def decode(cls, data: bytes) -> LedgerRecord:
        """Read the stored form.

        Raises:
            CorruptDataError: The bytes are not a record.
        """
        try:
            return cls._decode(data)
        except (struct.error, UnicodeDecodeError, IndexError) as error:
            raise CorruptDataError(f"ledger record of {len(data)} bytes: {error}") from error

    @classmethod
    def _decode(cls, data: bytes) -> LedgerRecord:
        flags, ensemble, write, ack, last_entry_id, length, digest_size = _FIXED.unpack_from(data)
        at = _FIXED.size + digest_size
        password_digest = data[_FIXED.size : at]
        (count,) = _U16.unpack_from(data, at)
        at += _U16.size
        custom_metadata = {}
        for _ in range(count):
            (size,) = _U16.unpack_from(data, at)
            at += _U16.size
            key = data[at : at + size].decode()
            at += size
            (size,) = _U32.unpack_from(data, at)
            at += _U32.size
            custom_metadata[key] = data[at : at + size]
            at += size
        if at != len(data) or digest_size not in DIGEST_SIZES or last_entry_id < -1:
            raise CorruptDataError(
                f"ledger record of {len(data)} bytes ends at {at}, "
                f"with a digest of {digest_size} bytes and last entry {last_entry_id}"
            )
        return cls(
            is_closed=bool(flags & CLOSED),
            is_fenced=bool(flags & FENCED),
            is_deleted=bool(flags & DELETED),
            ensemble_size=ensemble,
            write_quorum_size=write,
            ack_quorum_size=ack,
            last_entry_id=last_entry_id,
            length_bytes=length,
            password_digest=password_digest,
            custom_metadata=custom_metadata,
        )


TOMBSTONE = LedgerRecord(is_closed=True, is_deleted=True)


def digest(password: bytes) -> bytes:
    """The stored form of a password; empty for an empty one."""
    return hashlib.sha256(password).digest() if password else b""
