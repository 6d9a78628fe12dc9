"""`OwnedRecord`: one key of the metadata store that its owner alone writes (edge).

Each write is a compare-and-set on the version that the owner wrote before, so an unexpected version
means another owner. The store's answer can be missing, though: then the write was made, or not, or
it may yet be made. The digest of such a value is kept; if a later compare-and-set finds another
version, the key is read back, and a value with a kept digest at the very next version is this
owner's own write. So the next write, at the latest, finds out whether it was made.

The version does not show a new owner that has read this key but not written it yet. So before each
change `check_owner` has to confirm that, at this moment, no other broker can be the owner. If the
session ends before the change arrives, the store refuses the change.

What always holds: the version that a write is made on top of is one that this owner has written, or
found when it became the owner. It never takes over a version of another writer.

Source: asyncUpdateLedgerIds and asyncUpdateCursorInfo of MetaStoreImpl in Pulsar's managed-ledger,
which rely on every answer.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from hashlib import sha256

from pulsar_py.common.errors import (
    ManagedLedgerFencedError,
    MetadataBadVersionError,
    MetadataError,
    MetadataExistsError,
    MetadataNotFoundError,
    MetadataTooLargeError,
    MetadataUnavailableError,
)
from pulsar_py.metadata.store import MUST_NOT_EXIST, MetadataStore, Versioned

logger = logging.getLogger(__name__)

_CERTAINLY_NOT_MADE = (MetadataUnavailableError, MetadataTooLargeError)
_GONE = b""  # stands for the digest of a deleted key
_ANOTHER_VERSION = (MetadataBadVersionError, MetadataExistsError)


class OwnedRecord:
    """A key and the version that its owner knows. Its owner writes one value at a time."""

    def __init__(
        self,
        metadata: MetadataStore,
        path: str,
        *,
        version: int = MUST_NOT_EXIST,
        check_owner: Callable[[], None] | None = None,
    ) -> None:
        """`version` is that of the stored value; MUST_NOT_EXIST if there is none.

        `check_owner` raises MetadataUnavailableError while another broker may be the owner, and
        ManagedLedgerFencedError if another one is.
        """
        self.path = path
        self.version = version
        self._metadata = metadata
        self._check_owner = check_owner or nobody_else
        self._doubtful: set[bytes] = set()  # digests of unanswered values sent for `version`
        self._may_be_gone = False  # a deletion of that version got no answer
        self._digest: bytes | None = None  # of the value known to be stored; None before a write

    @property
    def is_in_doubt(self) -> bool:
        """Whether the outcome of a write is unknown."""
        return bool(self._doubtful)

    def found(self, versioned: Versioned) -> None:
        """Continue from a version that the owner has read."""
        self._is_now(versioned.version, sha256(versioned.value).digest())

    async def write(self, value: bytes) -> None:
        """Replace the value durably.

        Raises:
            ManagedLedgerFencedError: Another owner changed it.
            MetadataError: It is not stored, or the outcome is unknown.
        """
        digest = sha256(value).digest()
        before = set(self._doubtful)
        self._doubtful.add(digest)
        try:
            self._check_owner()
            version = await self._metadata.put(self.path, value, expected_version=self.version)
        except _ANOTHER_VERSION as error:
            self._doubtful = before  # this write was certainly not made
            if await self._adopt(error) != digest:
                await self.write(value)
        except _CERTAINLY_NOT_MADE:
            self._doubtful = before
            raise
        except MetadataError as error:
            if await self._find_out(error) != digest:
                raise
        else:
            self._is_now(version, digest)

    def _is_now(self, version: int, digest: bytes | None) -> None:
        self.version = version
        self._digest = digest
        self._doubtful.clear()
        self._may_be_gone = False

    async def _adopt(self, refusal: MetadataError) -> bytes:
        """Go on from another stored version if it is our own; returns its digest."""
        digest = await self._own_write()
        if digest is None:
            raise ManagedLedgerFencedError(f"{self.path}: {refusal}") from refusal
        return digest

    async def _find_out(self, error: MetadataError) -> bytes | None:
        """Read back after a missing answer: the digest of our own write, None if none is found."""
        try:
            return await self._own_write()
        except MetadataError:
            # The next write reads back again; the caller gets the error of its own write.
            logger.info("outcome not known", extra={"path": self.path, "error": str(error)})
            return None

    async def _own_write(self) -> bytes | None:
        """Read the stored value, and take over its version if it is one of the unanswered ones.

        If the key is gone, and a deletion of ours had no answer, the next write creates it again.
        """
        stored = await self._read()
        if stored is None and self._may_be_gone:
            self._is_now(MUST_NOT_EXIST, None)
            return _GONE
        if stored is None or stored.version != self.version + 1:
            return None
        digest = sha256(stored.value).digest()
        if digest not in self._doubtful:
            return None
        logger.info("found our own write", extra={"path": self.path, "version": stored.version})
        self._is_now(stored.version, digest)
        return digest

    async def _read(self) -> Versioned | None:
        return await self._metadata.get_newest(self.path)

    async def confirm(self) -> None:
        """Check that the stored value is this owner's; may run beside a write.

        The version alone is not enough: a key that was deleted and created again starts at 0.

        Raises:
            ManagedLedgerFencedError: Another owner changed it.
            MetadataError: That can't be found out now.
        """
        version, known = self.version, self._digest
        stored = await self._read()
        found = MUST_NOT_EXIST if stored is None else stored.version
        digest = None if stored is None else sha256(stored.value).digest()
        if found in (version, self.version) and (known is None or digest in (known, self._digest)):
            return
        if found == version + 1 and digest in self._doubtful:
            return
        raise ManagedLedgerFencedError(
            f"{self.path}: expected version {version}, it has {found}: another owner wrote it"
        )

    async def delete(self) -> None:
        """Remove the key; fine if it is gone.

        Raises:
            ManagedLedgerFencedError: Another owner changed it.
            MetadataError: It may still be there.
        """
        try:
            self._check_owner()
            await self._metadata.delete(self.path, expected_version=self.version)
        except MetadataNotFoundError:
            logger.info("record was gone", extra={"path": self.path})
        except MetadataBadVersionError as error:
            await self._adopt(error)
            await self.delete()
        except _CERTAINLY_NOT_MADE:
            raise
        except MetadataError:
            self._may_be_gone = True
            if await self._read() is not None:
                raise


def nobody_else() -> None:
    """A `check_owner` for stores that no other process can open."""
