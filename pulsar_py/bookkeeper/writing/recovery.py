"""Recovers a ledger that its writer left open: fences it, finds its end, closes it (edge).

    metadata    OPEN becomes IN_RECOVERY: no ensemble of the writer's is recorded any more
    bookies     each of the last segment is fenced and says what its last entry is, until none can
                confirm an entry without one that was (`Coverage`)
    entries     from behind the greatest last add confirmed that they told: each is searched in its
                write set (`EntrySearch`), by reads that fence too, unless a bookie told it as its
                last one just before; what is found is added again; the first that can't have been
                confirmed ends it, whatever may lie behind
    metadata    IN_RECOVERY becomes CLOSED with the end, once all that was added is confirmed

Several may do it at once: they find the same confirmed entries, and the first to write an end wins.
Where it is not known whether an entry is there, the ledger is not closed: another attempt begins
anew. Other bookies that take the place of those that fail meanwhile are kept in memory and written
with the end: another recovery must go on looking where the entries were before.

Source: LedgerRecoveryOp, LedgerOpenOp in Apache BookKeeper.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Final

from pulsar_py.bookkeeper.cluster.cluster import LedgerCluster, LedgerInUse
from pulsar_py.bookkeeper.metadata.ledger_metadata import LedgerMetadata, LedgerStatus
from pulsar_py.bookkeeper.protocol import frames
from pulsar_py.bookkeeper.protocol.entry_format import BookieEntry, unpacked
from pulsar_py.bookkeeper.protocol.frames import BookieCode
from pulsar_py.bookkeeper.reading.asking import ask, last_entries
from pulsar_py.bookkeeper.reading.read_quorum import EntryFate, EntrySearch
from pulsar_py.bookkeeper.reading.reader import length_up_to
from pulsar_py.bookkeeper.writing.replication import FailedBookie, Replicator
from pulsar_py.common.errors import (
    CorruptDataError,
    StorageError,
    StoreUnavailableError,
)

logger = logging.getLogger(__name__)

MAX_UNCONFIRMED_ENTRIES: Final = 32
"""The most entries that are added again at a time."""


async def recover(cluster: LedgerCluster, ledger: LedgerInUse) -> None:
    """Return when the ledger is closed; `ledger` knows its end then.

    Raises:
        LedgerNotFoundError: It was deleted.
        StoreUnavailableError: Too few bookies answered; it may be fenced.
        StorageError: Its end could not be determined.
    """
    records = cluster.records

    def fence(metadata: LedgerMetadata) -> LedgerMetadata | None:
        return metadata.in_recovery() if metadata.status is LedgerStatus.OPEN else None

    ledger.learn(await records.change(ledger.ledger_id, ledger.recorded, fence))
    if ledger.recorded.metadata.is_closed:
        return
    try:
        await _Recovery(cluster, ledger).run()
    except StorageError:
        cluster.counters.failed_recoveries_count += 1
        raise
    cluster.counters.recoveries_count += 1


class _Recovery:
    """One attempt at a recovery."""

    def __init__(self, cluster: LedgerCluster, ledger: LedgerInUse) -> None:
        self._cluster = cluster
        self._ledger = ledger
        self._metadata = ledger.recorded.metadata  # as it was when this began
        self._changes: list[tuple[int, tuple[str, ...]]] = []  # first entry, ensemble
        self._told: dict[int, BookieEntry] = {}  # the last entries of fenced bookies, by id
        self._failing: dict[str, None] = {}  # bookies that could not say; asked last
        self._progress = asyncio.Event()
        self._error: StorageError | None = None  # why nothing more is confirmed

    async def run(self) -> None:
        known = await last_entries(self._cluster, self._ledger, frames.FENCE_AND_READ)
        self._told = {entry.entry_id: entry for entry in known}
        start = self._metadata.last_segment.first_entry_id - 1
        start = max([start, *(entry.last_add_confirmed for entry in known)])
        replicator = Replicator(
            self._cluster, self._ledger, self, flags=frames.RECOVERY_ADD, last_confirmed=start
        )
        try:
            await self._add_again(replicator, start + 1)
            last = replicator.last_confirmed
            if last > start:
                length_bytes = replicator.confirmed_bytes
            else:
                length_bytes = await self._length_up_to(last, known)
        finally:
            replicator.stop(StorageError("the recovery is over"))
        await self._close(last, length_bytes)

    async def _length_up_to(self, last: int, known: list[BookieEntry]) -> int:
        try:
            return await length_up_to(self._cluster, self._ledger, last, known)
        except CorruptDataError as error:
            # Only sums hang on it: what is there is as good as before.
            logger.warning(
                "length of a recovered ledger is not exact",
                extra={"ledger_id": self._ledger.ledger_id, "error": str(error)},
            )
            return max((entry.length_bytes for entry in known), default=0)

    # Reading on and writing again

    async def _add_again(self, replicator: Replicator, first_entry_id: int) -> None:
        """Add the entries that were found, in order, until all are confirmed."""
        entry_id = first_entry_id
        while (entry := await self._search(entry_id)) is not None:
            payload = entry.payload
            self._check_error()
            added = replicator.add((payload,), len(payload), length_bytes=entry.length_bytes)
            assert added == entry_id
            await self._until_pending(replicator, MAX_UNCONFIRMED_ENTRIES)
            entry_id += 1
        await self._until_pending(replicator, 0)

    async def _until_pending(self, replicator: Replicator, count: int) -> None:
        self._check_error()
        while replicator.pending_count > count:
            self._progress.clear()
            await self._progress.wait()
            self._check_error()

    def _check_error(self) -> None:
        if self._error is not None:
            raise StoreUnavailableError(
                f"ledger {self._ledger.ledger_id}: what was found can't be added again: "
                f"{self._error}"
            ) from self._error

    async def _search(self, entry_id: int) -> BookieEntry | None:
        """The entry, None where it can't have been confirmed.

        Raises:
            StoreUnavailableError: Nobody has it, and not enough know that.
        """
        if entry_id in self._told:
            return self._told[entry_id]
        ledger, metadata = self._ledger, self._metadata
        ensemble = metadata.ensemble_at(entry_id)
        places = sorted(
            metadata.write_set(entry_id), key=lambda index: ensemble[index] in self._failing
        )
        search = EntrySearch(places, ack_quorum_size=metadata.ack_quorum_size)
        entry: BookieEntry | None = None
        reasons: list[str] = []
        while search.fate is EntryFate.UNDECIDED:
            bookie_id = ensemble[search.next_place()]
            link = self._cluster.bookies.link(bookie_id)
            answer = await ask(link, ledger, entry_id, frames.RECOVERY_READ)
            if answer.code in frames.NOT_HERE:
                search.on_absent()
                continue
            if answer.code == BookieCode.EOK:
                try:
                    entry = unpacked(ledger.digest, ledger.ledger_id, entry_id, answer.data)
                    search.on_found()
                    continue
                except CorruptDataError as error:
                    reasons.append(f"{bookie_id}: {error}")
            else:
                reasons.append(f"{bookie_id}: {frames.code_name(answer.code)}")
            self._failing[bookie_id] = None
        if search.fate is EntryFate.UNKNOWN:
            raise StoreUnavailableError(
                f"ledger {ledger.ledger_id}: whether there is an entry {entry_id} is not known: "
                f"{'; '.join(reasons)}"
            )
        return entry

    def on_progress(self) -> None:
        """Continue adding: entries were confirmed."""
        self._progress.set()

    def on_released(self, size_bytes: int) -> None:
        """Do nothing: the entries under way have a bound of their own."""

    def on_replication_failed(self, error: StorageError) -> None:
        """Fail the recovery: nothing more will be confirmed."""
        self._error = error
        self._progress.set()

    async def replace(
        self, failed: Mapping[int, FailedBookie], first_entry_id: int
    ) -> Mapping[int, str]:
        """Choose other bookies for as many places as possible; they are recorded with the end.

        A ledger whose bookies have an ack quorum is recovered, whether or not others are left.
        """
        before = self._changes[-1][1] if self._changes else self._metadata.last_segment.bookie_ids
        names = {index: each.bookie_id for index, each in failed.items()}
        self._failing.update(dict.fromkeys(names.values()))
        chosen = await self._cluster.ensembles.replacements(
            self._metadata, before, names, avoided=self._failing
        )
        if not chosen:
            return {}
        self._cluster.counters.ensemble_changes_count += 1
        after = tuple(chosen.get(index, bookie_id) for index, bookie_id in enumerate(before))
        self._changes.append((first_entry_id, after))
        return chosen

    # The end

    async def _close(self, last: int, length_bytes: int) -> None:
        """Record the end of the ledger, unless another recovery did so first."""

        def close(metadata: LedgerMetadata) -> LedgerMetadata | None:
            if metadata.is_closed:
                return None
            for first_entry_id, bookie_ids in self._changes:
                if first_entry_id <= last:
                    metadata = metadata.with_ensemble(first_entry_id, bookie_ids)
            return metadata.closed(last, length_bytes)

        ledger = self._ledger
        ledger.learn(await self._cluster.records.change(ledger.ledger_id, ledger.recorded, close))
        logger.info(
            "ledger recovered",
            extra={"ledger_id": ledger.ledger_id, "last_entry_id": last, "length": length_bytes},
        )
