"""`ManagedLedgerConfig`: settings of a managed ledger and its cursors, with units in the names.

Each managed ledger has one frozen value, replaced when a policy changes. The defaults are those
of `broker.conf`; -1 means "no limit" for retention, 0 switches an interval off.

Source: ManagedLedgerConfig in Pulsar's managed-ledger.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from pulsar_py.ledgers import labels
from pulsar_py.ledgers.store import LedgerOptions
from pulsar_py.managed_ledger.log.record_values import RecordCompression

MEBIBYTE = 1024 * 1024


class ManagedLedgerConfig(Struct, frozen=True):
    """Settings of one managed ledger."""

    max_entries_per_ledger: int = 50_000
    max_size_per_ledger_bytes: int = 2048 * MEBIBYTE
    minimum_rollover_seconds: float = 600.0
    maximum_rollover_seconds: float = 240 * 60.0
    # An idle ledger with entries is closed after this; 0 never.
    inactive_ledger_rollover_seconds: float = 0.0
    # Acknowledged data is kept this long (-1 for ever, 0 not at all) ...
    retention_seconds: float = 0.0
    # ... and within this size (-1 without limit, 0 not at all).
    retention_size_bytes: int = 0
    # After a ledger could not be created, appends fail at once for this long.
    creation_failure_backoff_seconds: float = 10.0
    # The same if the store was unavailable (full disk, too few bookies), which can end any moment.
    unavailable_backoff_seconds: float = 1.0
    ledger_creation_timeout_seconds: float = 60.0
    # Appends that may wait for a ledger to be created, in bytes; beyond it they fail.
    max_queued_bytes: int = 256 * MEBIBYTE
    is_batch_index_ack_enabled: bool = True
    # A dirty cursor is written at most once in this time, and this long after an ack at the latest.
    cursor_persist_interval_seconds: float = 1.0
    cursor_max_entries_per_ledger: int = 50_000
    cursor_rollover_seconds: float = 14_400.0
    # More ranges and partly acknowledged batches than this are stored in segments.
    max_ranges_in_cursor_entry: int = 2_000
    # More than these are stored all the same, but logged as a warning and counted in statistics.
    max_unacked_ranges_to_persist: int = 200_000
    max_batch_deleted_indexes_to_persist: int = 200_000
    # The most ranges and batches in the record if no cursor ledger can be created; the rest is
    # written once one can.
    max_unacked_ranges_to_persist_in_metadata: int = 1_000
    persists_ranges_as_long_arrays: bool = True
    # Of the records of topics, and of cursors, in the metadata.
    ledger_list_compression: RecordCompression = field(default_factory=RecordCompression)
    cursor_compression: RecordCompression = field(default_factory=RecordCompression)
    # A cursor further behind than this is not tailing: nothing is cached for it.
    cursor_backlogged_threshold_entries: int = 1_000
    # Bytes that one catch-up read may fetch beyond those asked for.
    read_ahead_bytes: int = 1 * MEBIBYTE
    # Lost ledgers and entries are skipped as if acknowledged, instead of failing every read.
    skips_non_recoverable_data: bool = False
    ledger_options: LedgerOptions = field(default_factory=LedgerOptions)
    # The cluster whose metadata names the ledgers; a label of each ledger.
    cluster: str = ""

    def without_retention(self) -> ManagedLedgerConfig:
        """Settings that keep nothing that every cursor has acknowledged.

        What a topic is truncated by: each rule of retention has to be switched off here.
        """
        return replace(self, retention_seconds=0.0, retention_size_bytes=0)

    def data_ledger_options(self, name: str) -> LedgerOptions:
        """Options of new ledgers of the managed ledger `name`."""
        return self._labelled(labels.managed_ledger(self.cluster, name))

    def cursor_ledger_options(self, cursor_path: str) -> LedgerOptions:
        """Options of new cursor ledgers of the cursor at that path of the metadata."""
        name, _, cursor_name = cursor_path.removeprefix("/managed-ledgers/").rpartition("/")
        return self._labelled(labels.cursor(self.cluster, name, cursor_name))

    def sequence_id_ledger_options(self, name: str) -> LedgerOptions:
        """Options of a ledger with sequence ids of a managed ledger's producers."""
        return self._labelled(labels.sequence_ids(self.cluster, name))

    def _labelled(self, own: Mapping[str, bytes]) -> LedgerOptions:
        options = self.ledger_options
        return replace(options, custom_metadata={**options.custom_metadata, **own})
