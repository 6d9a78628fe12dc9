"""`tell_idle_ends`: tells bookies how far idle ledgers are confirmed (edge).

The last entries of a ledger are confirmed, and no entry behind them says so. Every
`explicit_lac_interval_seconds` each writer that has appended nothing since the last time, and whose
last add confirmed bookies do not know, tells it to them. Whoever reads the open ledger without
recovering it then sees those entries as well, at most two intervals late.

Source: ExplicitLacUpdateFlow in Apache BookKeeper.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from pulsar_py.bookkeeper.cluster.cluster import LedgerCluster
from pulsar_py.bookkeeper.writing.writer import BookKeeperWriter
from pulsar_py.common.loops.concurrently import each_result

LEDGERS_AT_ONCE: Final = 64
"""The ledgers that are told at a time, so that thousands do not burst out together."""


async def tell_idle_ends(cluster: LedgerCluster, writers: Collection[BookKeeperWriter]) -> None:
    """Work until it is cancelled; `writers` are the open ones, looked at anew each time."""
    while True:
        await cluster.clock.sleep(cluster.settings.explicit_lac_interval_seconds)
        due = [writer for writer in writers if writer.has_untold_end()]
        await each_result(BookKeeperWriter.tell_end, due, at_once=LEDGERS_AT_ONCE)
