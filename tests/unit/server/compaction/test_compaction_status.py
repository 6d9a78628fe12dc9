"""States by the names that answers have, and figures before the first compaction."""

from __future__ import annotations

import pytest

from pulsar_py.server.compaction.compaction_status import (
    CompactionState,
    CompactionStats,
    CompactionTotals,
)


def test_the_states_are_those_of_pulsar() -> None:
    """LongRunningProcessStatus.Status in Pulsar's admin client."""
    names = ["NOT_RUN", "RUNNING", "SUCCESS", "ERROR"]
    assert [state.value for state in CompactionState] == names


def test_a_topic_that_was_never_compacted() -> None:
    stats = CompactionStats()
    assert (stats.state, stats.last_error) == (CompactionState.NOT_RUN, "")
    assert (stats.ledger_id, stats.ledger_entries_count, stats.ledger_bytes) == (None, -1, -1)
    assert (stats.succeeded_millis, stats.failed_millis, stats.duration_millis) == (0, 0, 0)


def test_what_was_handed_out_does_not_change_and_totals_are_the_brokers_own() -> None:
    with pytest.raises(AttributeError):
        CompactionStats().removed_messages = 1  # type: ignore[misc]
    mine, other = CompactionTotals(), CompactionTotals()
    mine.succeeded_count += 1
    assert (mine.succeeded_count, other.succeeded_count) == (1, 0)
