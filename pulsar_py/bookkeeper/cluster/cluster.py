"""`LedgerCluster`: the parts that all ledgers of a store share; `LedgerInUse`: one open ledger.

`PinnedBytes` is the store's one bound on memory: what appends hold until their whole write set has
answered.
"""

from __future__ import annotations

from dataclasses import dataclass

from pulsar_py.bookkeeper.bookies.bookies import Bookies
from pulsar_py.bookkeeper.bookies.explicit_lacs import ExplicitLacs
from pulsar_py.bookkeeper.cluster.ensembles import Ensembles
from pulsar_py.bookkeeper.cluster.settings import BookKeeperSettings
from pulsar_py.bookkeeper.metadata.ledger_records import LedgerRecords, RecordedLedger
from pulsar_py.bookkeeper.protocol.digest import EntryDigest, master_key
from pulsar_py.common.errors import StorageError, StoreBusyError
from pulsar_py.common.loops.clock import Clock
from pulsar_py.common.loops.tasks import TaskOwner
from pulsar_py.ledgers.store import StoreLimits


class PinnedBytes:
    """Counts the bytes of appends that not all bookies have answered."""

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
        """Subtract an append."""
        self.now_bytes -= size_bytes
        assert self.now_bytes >= 0


@dataclass(slots=True)
class LedgerCounters:
    """Counts of events of ledgers since the start."""

    ensemble_changes_count: int = 0
    """Changes of ensembles, in open ledgers and in recoveries."""
    same_bookie_retries_count: int = 0
    """Bookies that failed and were kept, because there were no others."""
    recoveries_count: int = 0
    """Ledgers that were recovered."""
    failed_recoveries_count: int = 0
    """Attempts that have to be repeated."""
    speculative_reads_count: int = 0
    """Entries asked of one more bookie because an answer took long."""
    busy_refusals_count: int = 0
    """Appends refused because too much waits for bookies."""


@dataclass(frozen=True, slots=True)
class LedgerCluster:
    """The parts that all ledgers of one store share."""

    bookies: Bookies
    explicit_lacs: ExplicitLacs
    ensembles: Ensembles
    records: LedgerRecords
    clock: Clock
    limits: StoreLimits
    settings: BookKeeperSettings
    counters: LedgerCounters
    pinned: PinnedBytes
    tasks: TaskOwner


class LedgerInUse:
    """One ledger that is open in this process: its metadata and password."""

    def __init__(self, ledger_id: int, recorded: RecordedLedger, password: bytes) -> None:
        """Check the password.

        Raises:
            StorageError: It is another one.
        """
        metadata = recorded.metadata
        if metadata.password not in (None, password):
            raise StorageError(f"ledger {ledger_id}: the password does not match")
        self.ledger_id = ledger_id
        self.recorded = recorded
        self.digest = EntryDigest(metadata.digest_type, password)
        self.master_key = master_key(password)
        self.sticky_bookie = ""  # with which reads of this handle stay; empty: none so far

    def learn(self, recorded: RecordedLedger) -> None:
        """Take a newer version of the metadata."""
        if recorded.version > self.recorded.version:
            self.recorded = recorded
