"""LedgerCluster: what all ledgers of one store share, and what is known of one ledger in use.

`PinnedBytes` is the store's one bound on memory: what appends hold until their whole write set has
answered.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from random import Random

from pulsar_py.bookkeeper.bookies import Bookies
from pulsar_py.bookkeeper.digest import EntryDigest, master_key
from pulsar_py.bookkeeper.ledger_records import LedgerRecords, RecordedLedger
from pulsar_py.bookkeeper.placement import choose
from pulsar_py.common.clock import Clock
from pulsar_py.common.errors import (
    MetadataError,
    StorageError,
    StoreBusyError,
    StoreUnavailableError,
)
from pulsar_py.common.tasks import TaskOwner
from pulsar_py.ledgers.store import StoreLimits


class PinnedBytes:
    """Bytes of appends without all of their answers."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self.now_bytes = 0

    def take(self, size_bytes: int) -> None:
        """Count an append.

        Raises:
            StoreBusyError: With it there would be too many.
        """
        if self.now_bytes + size_bytes > self._limit_bytes:
            raise StoreBusyError(
                f"{self.now_bytes} of {self._limit_bytes} bytes wait for bookies, "
                f"no room for {size_bytes}"
            )
        self.now_bytes += size_bytes

    def give_back(self, size_bytes: int) -> None:
        """Count it no more."""
        self.now_bytes -= size_bytes
        assert self.now_bytes >= 0


@dataclass(frozen=True, slots=True)
class LedgerCluster:
    """What all ledgers of one store share."""

    bookies: Bookies
    records: LedgerRecords
    clock: Clock
    chance: Random
    limits: StoreLimits
    pinned: PinnedBytes
    tasks: TaskOwner

    async def choose(
        self, count: int, *, excluded: Collection[str] = (), avoided: Collection[str] = ()
    ) -> list[str]:
        """So many bookies for new entries; those to be avoided only where others are too few.

        Raises:
            NotEnoughBookiesError: There are fewer.
            StoreUnavailableError: The metadata can't be asked.
        """
        try:
            writable = await self.bookies.registry.writable()
        except MetadataError as error:
            raise StoreUnavailableError(f"bookies can't be listed: {error}") from error
        return choose(
            count,
            writable,
            excluded=excluded,
            is_suspect=lambda each: each in avoided or self.bookies.is_failing(each),
            chance=self.chance,
        )


class LedgerInUse:
    """What is known of one ledger that is open here."""

    def __init__(self, ledger_id: int, recorded: RecordedLedger, password: bytes) -> None:
        """Check the password.

        Raises:
            StorageError: It is another one.
        """
        metadata = recorded.metadata
        if metadata.password not in (None, password):
            raise StorageError(f"ledger {ledger_id}: the password is another one")
        self.ledger_id = ledger_id
        self.recorded = recorded
        self.digest = EntryDigest(metadata.digest_type, password)
        self.master_key = master_key(password)

    def learn(self, recorded: RecordedLedger) -> None:
        """Take a newer version of the metadata."""
        if recorded.version > self.recorded.version:
            self.recorded = recorded
