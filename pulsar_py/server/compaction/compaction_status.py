"""The state and the figures of a topic's compactions, and of all of a broker (values).

Source: CompactionStatus, CompactionRecord, CompactorMXBean in Pulsar.
"""

from __future__ import annotations

from enum import Enum

from msgspec import Struct


class CompactionState(Enum):
    """The state of the last compaction, by its name in answers; forgotten with the topic."""

    NOT_RUN = "NOT_RUN"
    RUNNING = "RUNNING"
    SUCCESS = "SUCCESS"
    ERROR = "ERROR"


class CompactionStats(Struct, frozen=True):
    """What is known of a topic's compactions.

    Attributes:
        state: The state of the last one.
        last_error: What was wrong with it; empty where nothing was.
        removed_messages: Messages that the last one left out.
        succeeded_millis: When one last succeeded, 0 never; 1970 is the begin.
        failed_millis: When one last failed, 0 never.
        duration_millis: How long the last one took.
        succeeded_count: Compactions that did something, since the topic was loaded.
        failed_count: Those that failed.
        removed_count: Messages that all of them left out.
        ledger_id: The ledger that readers get; None: the topic was never compacted.
        ledger_entries_count: Its entries; -1 without a ledger.
        ledger_bytes: Its size; -1 without a ledger.
    """

    state: CompactionState = CompactionState.NOT_RUN
    last_error: str = ""
    removed_messages: int = 0
    succeeded_millis: int = 0
    failed_millis: int = 0
    duration_millis: int = 0
    succeeded_count: int = 0
    failed_count: int = 0
    removed_count: int = 0
    ledger_id: int | None = None
    ledger_entries_count: int = -1
    ledger_bytes: int = -1


class CompactionTotals(Struct):
    """Sums over all compactions of a broker since it started."""

    succeeded_count: int = 0
    failed_count: int = 0
    removed_messages: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    duration_millis: int = 0
    sorted_runs_count: int = 0
    """Runs of keys that did not fit in memory."""
