"""`CompactedWriter`: writes the records of a new compacted ledger (edge).

Every few megabytes what was written leaves the memory of the store: a compaction would fill the
write cache, whatever it may hold itself.

Source: AbstractTwoPhaseCompactor.addToCompactedLedger in Pulsar's broker.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from msgspec.structs import replace

from pulsar_py.common.errors import StorageError
from pulsar_py.common.loops.clock import Clock
from pulsar_py.ledgers import labels
from pulsar_py.ledgers.store import DigestType, LedgerOptions, LedgerStore
from pulsar_py.managed_ledger.log.whole_ledger import BESIDE_OTHERS_BYTES, WholeLedgerWriter

FLUSHED_BYTES: Final = 8 * 1024 * 1024
"""So much of a compacted ledger waits for its entry log at most. A flush costs some milliseconds
beside what it writes, so smaller pieces would cost others time."""


class CompactedWriter(WholeLedgerWriter):
    """The new ledger of one compaction, written beside what producers publish."""

    def __init__(self, ledger_store: LedgerStore, clock: Clock) -> None:
        """Take the store, and the clock of pauses while it is busy."""
        super().__init__(ledger_store, clock, max_unconfirmed_bytes=BESIDE_OTHERS_BYTES)
        self._store = ledger_store
        self._unflushed_bytes = 0

    async def create(
        self, options: LedgerOptions, *, cluster: str, topic: str, compacted_to: bytes
    ) -> int:
        """Create the ledger; returns its id. The digest and password are those of Apache Pulsar.

        Raises:
            StorageError, MetadataError: There is none, or one that no metadata names.
        """
        own = labels.compacted_ledger(cluster, topic, compacted_to)
        return await self.create_with(
            replace(
                options,
                digest_type=DigestType.CRC32,
                password=b"",
                custom_metadata={**options.custom_metadata, **own},
            )
        )

    async def append(self, entry: bytes) -> None:
        """Append one entry, once there is room for it.

        Raises:
            StorageError: The ledger takes no more.
        """
        await super().append(entry)
        self._unflushed_bytes += len(entry)
        if self._unflushed_bytes >= FLUSHED_BYTES:
            self._unflushed_bytes = 0
            # The journal has the entries, and the store tries again by itself.
            with suppress(StorageError):
                await self._store.flush()
