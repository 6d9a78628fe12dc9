"""OwnedRecord: one key of the metadata store that its owner alone writes (edge).

Each write is a compare-and-set on top of what the owner wrote before, so that a version that is not
expected means another owner. The store's answer can be missing, though: then the write was made, or
not, or it may yet be made. The digest of such a value is kept; if a later compare-and-set finds
another version, the key is read back, and a value with a kept digest at the very next version is
this owner's own write. So the next write, at the latest, finds out whether it was made.

A version does not tell that somebody else reads: who took over may not have written this key yet.
So before each change `check_owner` is asked whether it is known, at this moment, that nobody did;
a session that ends before the change arrives takes it along.

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
_GONE = b""  # instead of a digest
_ANOTHER_VERSION = (MetadataBadVersionError, MetadataExistsError)


class OwnedRecord:
    """A key and the version that its owner knows. One write at a time; owned by who writes it."""

    def __init__(
        self,
        metadata: MetadataStore,
        path: str,
        *,
        version: int = MUST_NOT_EXIST,
        check_owner: Callable[[], None] | None = None,
    ) -> None:
        """`version` is what is stored now; MUST_NOT_EXIST if nothing is.

        `check_owner` raises MetadataUnavailableError while somebody else may be the owner, and
        ManagedLedgerFencedError when somebody else is.
        """
        self.path = path
        self.version = version
        self._metadata = metadata
        self._check_owner = check_owner or _nobody_else
        self._doubtful: set[bytes] = set()  # digests of values sent on top of `version`
        self._may_be_gone = False  # we began to delete that version
        self._digest: bytes | None = None  # of what we know to be stored; None before a write

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
        """Another version is stored: go on from there if it is our own; returns its digest."""
        digest = await self._own_write()
        if digest is None:
            raise ManagedLedgerFencedError(f"{self.path}: {refusal}") from refusal
        return digest

    async def _find_out(self, error: MetadataError) -> bytes | None:
        """The answer is missing: the digest of our own write that is found, None if none is yet."""
        try:
            return await self._own_write()
        except MetadataError:
            # The next write asks again; what matters to the caller is what happened to this one.
            logger.info("outcome not known", extra={"path": self.path, "error": str(error)})
            return None

    async def _own_write(self) -> bytes | None:
        """Read back what is stored, and take its version if it is one of the doubtful values.

        If it is gone, and a deletion of ours had no answer, the next write makes it anew.
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
        await self._metadata.sync(self.path)
        return await self._metadata.get(self.path)

    async def confirm(self) -> None:
        """Check that the stored value is this owner's; may run beside a write.

        The version alone does not tell: a key that was deleted and made anew counts from 0 again.

        Raises:
            ManagedLedgerFencedError: Another owner changed it.
            MetadataError: That can't be known now.
        """
        version, known = self.version, self._digest
        stored = await self._read()
        found = MUST_NOT_EXIST if stored is None else stored.version
        digest = None if stored is None else sha256(stored.value).digest()
        if found in (version, self.version) and (known is None or digest in (known, self._digest)):
            return
        if found == version + 1 and digest in self._doubtful:
            return
        raise ManagedLedgerFencedError(f"{self.path}: it has version {found}, not {version}")

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


def _nobody_else() -> None:
    """There are no other owners."""
