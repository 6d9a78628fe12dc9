"""`LedgerCollector`: deletes ledgers of this cluster that no metadata names (edge).

The owner of a ledger names it in the metadata store in a second step, and on deletion removes the
name first; a crash between both leaves a ledger without a name. Each round compares the ledgers of
the store with all names. A ledger is deleted if it had no name in every round for longer than any
such second step takes, and has the label of this cluster: those of other clusters or programs, and
those without labels, stay. A round that could not list all ledgers, or read all names, deletes
nothing.

In a store that others use too (`LedgerStore.is_shared`) such ledgers are only reported, and left
until the operator decides: they may be named where this broker does not look.

It keeps two bitmaps in memory, and a number for each unnamed ledger.

Source: ScanAndCompareGarbageCollector in Apache BookKeeper, which compares with ledger metadata.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence

from pyroaring import BitMap64

from pulsar_py.common.errors import LedgerNotFoundError, MetadataError, PulsarError, StorageError
from pulsar_py.common.loops.clock import Clock
from pulsar_py.ledgers import labels
from pulsar_py.ledgers.store import LedgerStore

logger = logging.getLogger(__name__)

INTERVAL_SECONDS = 1800.0
MINIMUM_AGE_SECONDS = 3600.0
CANDIDATES_COUNT = 100_000
"""The most unnamed ledgers that are kept as candidates. If there are more, the oldest are kept, and
the age of the others counts from a later round."""

REPORTED_COUNT = 20
"""Most ids that one line of the log names."""

Names = Callable[[], Awaitable[Iterable[int]]]


class LedgerCollector:
    """Finds and deletes ledgers that a crash left over; the broker owns its task."""

    def __init__(
        self,
        ledger_store: LedgerStore,
        names: Sequence[Names],
        clock: Clock,
        *,
        cluster: str,
        interval_seconds: float = INTERVAL_SECONDS,
        minimum_age_seconds: float = MINIMUM_AGE_SECONDS,
        deletes: bool | None = None,
        may_run: Callable[[], bool] = lambda: True,
    ) -> None:
        """`names` together give the ids of all ledgers that are in use in `cluster`.

        Rounds begin only while `may_run` says so: in a cluster one broker at a time does it.

        With `deletes` off they are only reported; None: in a store that others use too.
        """
        self._ledger_store = ledger_store
        self._names = names
        self._clock = clock
        self._cluster = cluster
        self._interval_seconds = interval_seconds
        self._minimum_age_seconds = minimum_age_seconds
        self._deletes = not ledger_store.is_shared if deletes is None else deletes
        self._may_run = may_run
        self.reported: dict[int, None] = {}
        """Ledgers of ours that the last round found without a name for long, and left alone."""
        self._unnamed_since: dict[int, float] = {}
        # Unnamed ledgers of others, remembered so that the labels of each are read only once.
        self._foreign = BitMap64()

    async def run(self) -> None:
        """One round after each interval, until cancelled."""
        while True:
            await self._clock.sleep(self._interval_seconds)
            if not self._may_run():
                continue
            try:
                await self.collect()
            except PulsarError as error:
                logger.warning("ledgers not compared", extra={"error": str(error)})

    async def collect(self) -> int:
        """Do one round; returns how many ledgers were deleted.

        Raises:
            PulsarError: Ledgers or names could not be read; nothing was deleted.
        """
        unnamed = await self._unnamed()
        self._foreign &= unnamed
        unnamed -= self._foreign
        now = self._clock.monotonic_seconds()
        since = self._unnamed_since
        self._unnamed_since = {
            ledger_id: since.get(ledger_id, now) for ledger_id in unnamed[:CANDIDATES_COUNT]
        }
        aged = [
            ledger_id
            for ledger_id, first_seen in self._unnamed_since.items()
            if now - first_seen >= self._minimum_age_seconds
        ]
        ours = [ledger_id for ledger_id in aged if await self._is_ours(ledger_id)]
        if not self._deletes:
            self._report(ours)
            return 0
        deleted = [ledger_id for ledger_id in ours if await self._delete(ledger_id)]
        if deleted:
            logger.info("unnamed ledgers deleted", extra={"count": len(deleted)})
        return len(deleted)

    async def _unnamed(self) -> BitMap64:
        # The ledgers are listed before the names: otherwise a ledger that was created and named in
        # between would be listed, but its name missing.
        unnamed = BitMap64()
        async for page in self._ledger_store.list_ledgers():
            unnamed.update(page)
        for names in self._names:
            unnamed -= BitMap64(await names())
        return unnamed

    async def _is_ours(self, ledger_id: int) -> bool:
        try:
            custom_metadata = await self._ledger_store.custom_metadata(ledger_id)
        except LedgerNotFoundError:
            return False
        except (StorageError, MetadataError) as error:
            self._warn(ledger_id, error)
            return False
        is_ours = labels.is_ours(custom_metadata, self._cluster)
        if not is_ours:
            self._foreign.add(ledger_id)
        return is_ours

    def _report(self, ours: Sequence[int]) -> None:
        if new := [ledger_id for ledger_id in ours if ledger_id not in self.reported]:
            logger.warning(
                "unnamed ledgers found, and left alone in a store that others use too",
                extra={"count": len(ours), "new_ledger_ids": new[:REPORTED_COUNT]},
            )
        self.reported = dict.fromkeys(ours)

    async def _delete(self, ledger_id: int) -> bool:
        try:
            await self._ledger_store.delete(ledger_id)
        except LedgerNotFoundError:
            return False
        except (StorageError, MetadataError) as error:
            self._warn(ledger_id, error)
            return False
        del self._unnamed_since[ledger_id]
        return True

    def _warn(self, ledger_id: int, error: Exception) -> None:
        # It stays a candidate; the others are deleted all the same.
        logger.warning(
            "unnamed ledger not deleted", extra={"ledger_id": ledger_id, "error": str(error)}
        )
