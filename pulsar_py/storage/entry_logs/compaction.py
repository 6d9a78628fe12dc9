"""Chooses the entry logs to rewrite and the index tables to merge (pure).

An entry log is rewritten when the share of its bytes that belongs to ledgers not deleted is below a
threshold; those with the smallest share come first, since they free the most space for the bytes
copied.

Tables are merged in tiers: neighbours of similar size, so that each key is written about once for
every doubling of the index, and the number of tables that a look-up reads stays logarithmic.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from pulsar_py.storage.shared.manifest import LogState

MERGE_TABLES_COUNT = 4
"""Neighbours of similar size that make a merge worth while."""

TIER_RATIO = 2
"""An older table joins a merge if it is at most this many times as large as all newer ones of the
merge together."""


def choose_logs(
    logs: Mapping[int, LogState], *, threshold: float, busy_log_ids: Collection[int] = ()
) -> list[int]:
    """Logs whose share of live bytes is below `threshold`, the smallest share first."""
    shares = {
        log_id: log.live_bytes / log.size_bytes
        for log_id, log in logs.items()
        if log.size_bytes and log_id not in busy_log_ids
    }
    return sorted(
        (log_id for log_id, share in shares.items() if share < threshold),
        key=lambda log_id: (shares[log_id], log_id),
    )


def choose_merge(sizes: Sequence[int]) -> range | None:
    """Places of tables to merge, of which `sizes` has the sizes, newest first; None if none."""
    for start in range(len(sizes)):
        total = sizes[start]
        end = start + 1
        while end < len(sizes) and sizes[end] <= TIER_RATIO * total:
            total += sizes[end]
            end += 1
        if end - start >= MERGE_TABLES_COUNT:
            return range(start, end)
    return None
