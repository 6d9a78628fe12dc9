"""`EntryDigest`: computes and checks the digests of entries, and a ledger's master key (pure).

    type      bytes   what
    CRC32C    4       unsigned
    CRC32     8       zlib's CRC in the lower half
    HMAC      20      HMAC-SHA-1, its key is SHA-1 of "mac" and the password
    DUMMY     0

The master key goes with every add and every fence; a bookie remembers the first one of a ledger and
compares. It is no secret: the password stands in clear in the ledger's metadata.

Source: DigestManager, MacDigestManager in Apache BookKeeper.
"""

from __future__ import annotations

import hashlib
import hmac
import zlib
from collections.abc import Sequence
from typing import Final

from pulsar_py.common.buffer import EntryBytes
from pulsar_py.common.hashing import crc32c
from pulsar_py.ledgers.store import DigestType

MASTER_KEY_BYTES: Final = 20

_SIZES_BYTES: Final = {
    DigestType.CRC32: 8,
    DigestType.HMAC: 20,
    DigestType.CRC32C: 4,
    DigestType.DUMMY: 0,
}
MAX_DIGEST_BYTES: Final = max(_SIZES_BYTES.values())


def master_key(password: bytes) -> bytes:
    """The key of a ledger with this password; of 20 bytes whatever its digest."""
    return hashlib.sha1(b"ledger" + password, usedforsecurity=False).digest()


class EntryDigest:
    """Works out the digests of one ledger."""

    def __init__(self, digest_type: DigestType, password: bytes) -> None:
        """Arguments are those of the ledger's metadata."""
        self._type = digest_type
        self._mac_key = hashlib.sha1(b"mac" + password, usedforsecurity=False).digest()
        self.size_bytes: Final = _SIZES_BYTES[digest_type]

    def compute(self, head: bytes | memoryview, pieces: Sequence[EntryBytes]) -> bytes:
        """The digest of an entry's head and payload, `size_bytes` long."""
        match self._type:
            case DigestType.CRC32C:
                value = crc32c(head)
                for piece in pieces:
                    value = crc32c(piece, value)
                return value.to_bytes(4, "big")
            case DigestType.CRC32:
                value = zlib.crc32(head)
                for piece in pieces:
                    value = zlib.crc32(piece, value)
                return value.to_bytes(8, "big")
            case DigestType.HMAC:
                mac = hmac.new(self._mac_key, head, hashlib.sha1)
                for piece in pieces:
                    mac.update(piece)
                return mac.digest()
            case DigestType.DUMMY:
                return b""

    def of_run(self, heads: Sequence[bytes], payloads: Sequence[bytes]) -> list[bytes]:
        """The digest of each entry of a run, as `compute` gives it."""
        # Hot path: publishing to bookies, one call a run.
        pairs = zip(heads, payloads, strict=True)
        if self._type is DigestType.CRC32C:
            return [crc32c(payload, crc32c(head)).to_bytes(4, "big") for head, payload in pairs]
        return [self.compute(head, (payload,)) for head, payload in pairs]
