"""`BookKeeperLedgerStore`: a `LedgerStore` on Apache BookKeeper (edge).

A ledger is created by its record in the metadata; bookies learn of it with its first entry. Its id
comes from the cluster's sequence. Deleting removes the record, and bookies collect the entries some
time later.

Source: BookKeeper, LedgerCreateOp, LedgerOpenOp, LedgerDeleteOp in Apache BookKeeper's client.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict
from random import Random
from typing import Final

from pulsar_py.bookkeeper.bookies.bookie_statistics import RemoteBookieStatistics, labelled
from pulsar_py.bookkeeper.bookies.bookies import Bookies
from pulsar_py.bookkeeper.bookies.explicit_lacs import ExplicitLacs
from pulsar_py.bookkeeper.bookies.health import BookieHealth
from pulsar_py.bookkeeper.bookies.registry import BookieRegistry
from pulsar_py.bookkeeper.cluster.cluster import (
    LedgerCluster,
    LedgerCounters,
    LedgerInUse,
    PinnedBytes,
)
from pulsar_py.bookkeeper.cluster.ensembles import Ensembles
from pulsar_py.bookkeeper.cluster.settings import BookKeeperSettings
from pulsar_py.bookkeeper.metadata.ledger_metadata import LedgerMetadata
from pulsar_py.bookkeeper.metadata.ledger_records import LedgerRecords
from pulsar_py.bookkeeper.protocol import frames
from pulsar_py.bookkeeper.protocol.frames import RequestFlags
from pulsar_py.bookkeeper.reading.ahead_reads import AheadReads
from pulsar_py.bookkeeper.reading.reader import BookKeeperReader, find_end, in_time, repeated
from pulsar_py.bookkeeper.watch import BookieWatch
from pulsar_py.bookkeeper.writing.idle_lacs import tell_idle_ends
from pulsar_py.bookkeeper.writing.recovery import recover
from pulsar_py.bookkeeper.writing.writer import BookKeeperWriter
from pulsar_py.common.errors import StorageError
from pulsar_py.common.failures import OnFailureAwait
from pulsar_py.common.loops.clock import Clock
from pulsar_py.common.loops.tasks import TaskOwner
from pulsar_py.ledgers.chosen_ledgers import ChosenLedgers, check_same_owner
from pulsar_py.ledgers.ids import LedgerIds
from pulsar_py.ledgers.store import (
    LedgerInfo,
    LedgerListener,
    LedgerOptions,
    LedgerReader,
    LedgerWriter,
)
from pulsar_py.metadata.store import MetadataStore

__all__ = ["BookKeeperLedgerStore", "BookKeeperSettings"]

MAX_IDS_COUNT: Final = 5
"""Ids that are tried for one ledger, where somebody has taken the id in another way."""


class BookKeeperLedgerStore(ChosenLedgers):
    """A client of one cluster; `connect` makes it. The metadata store is its maker's."""

    is_shared = True

    def __init__(
        self,
        metadata: MetadataStore,
        clock: Clock,
        ledger_ids: LedgerIds,
        *,
        chance: Random,
        settings: BookKeeperSettings,
        racks_metadata: MetadataStore | None = None,
    ) -> None:
        """Use `connect`."""
        self.limits = settings.limits
        self._ledger_ids = ledger_ids
        self._tasks = TaskOwner("BookKeeper")
        self._registry = BookieRegistry(metadata, settings.root, racks_metadata)
        bookies = Bookies(
            self._registry, clock, settings.connection, BookieHealth(settings.quarantine)
        )
        self._cluster = LedgerCluster(
            bookies=bookies,
            explicit_lacs=ExplicitLacs(self._registry, settings.connection),
            ensembles=Ensembles(bookies, clock, chance, settings.placement),
            records=LedgerRecords(metadata, settings.root),
            clock=clock,
            limits=self.limits,
            settings=settings,
            counters=LedgerCounters(),
            pinned=PinnedBytes(self.limits.max_pinned_bytes),
            tasks=self._tasks,
        )
        self._ahead = AheadReads(self._cluster, self._tasks)
        # Open ones, in the order of their making; each with the sizes its policy asked for.
        self._writers: dict[BookKeeperWriter, LedgerOptions] = {}
        self._watch = BookieWatch(
            bookies, clock, self._tasks, on_gone=self._on_gone, on_listed=self._on_listed
        )
        bookies.on_failing = self._watch.on_failing
        bookies.on_back = lambda _: self._cluster.ensembles.on_change()
        self._registry.on_change = self._on_registry_change
        self._is_closed = False

    @classmethod
    async def connect(
        cls,
        metadata: MetadataStore,
        clock: Clock,
        ledger_ids: LedgerIds,
        *,
        chance: Random | None = None,
        settings: BookKeeperSettings | None = None,
        racks_metadata: MetadataStore | None = None,
    ) -> BookKeeperLedgerStore:
        """A client of the cluster whose bookies are registered in `metadata`.

        `ledger_ids` give the ids of new ledgers: the numbers of the cluster's own sequence.
        `racks_metadata` has the map of racks; None: the same store.

        Raises:
            StorageError: BookKeeper's metadata is not formatted, or has an unknown layout.
        """
        chance = chance or Random()  # noqa: S311  # spreads ledgers over bookies
        settings = settings or BookKeeperSettings()
        store = cls(
            metadata,
            clock,
            ledger_ids,
            chance=chance,
            settings=settings,
            racks_metadata=racks_metadata,
        )
        async with OnFailureAwait(store.close):
            await store._cluster.records.check_layout()
        if settings.explicit_lac_interval_seconds > 0:
            store._tasks.spawn(tell_idle_ends(store._cluster, store._writers), "idle ledgers")
        return store

    def _on_registry_change(self) -> None:
        self._cluster.ensembles.on_change()
        self._watch.on_registry_change()

    def _on_gone(self, bookie_id: str) -> None:
        for writer in list(self._writers):
            writer.on_bookie_gone(bookie_id)

    def _on_listed(self, bookie_ids: Collection[str]) -> None:
        for writer in list(self._writers):
            writer.on_bookies_listed(bookie_ids)

    def _check_open(self) -> None:
        if self._is_closed:
            raise StorageError("the ledger store is closed")

    async def create(self, listener: LedgerListener, options: LedgerOptions) -> LedgerWriter:
        """Record a new ledger on bookies that take entries: fewer of them where some are missing.

        With fewer than the ack quorum it waits for them, up to the time of a call.
        """
        self._check_open()
        wrong = LedgerMetadata.new(options, [""] * options.ensemble_size).check()
        if wrong is not None:
            raise StorageError(f"no ledger can have {wrong}")
        timeout_seconds = self.limits.answer_timeout_seconds
        fitting, bookie_ids = await self._cluster.ensembles.new(options, timeout_seconds)
        for _ in range(MAX_IDS_COUNT):
            ledger_id = await self._ledger_ids.next()
            async with in_time(self._cluster, ledger_id):
                metadata = LedgerMetadata.new(fitting, bookie_ids)
                recorded = await self._cluster.records.create(ledger_id, metadata)
            self._check_open()
            if recorded is not None:
                ledger = LedgerInUse(ledger_id, recorded, options.password)
                return self._written(ledger, listener, options)
        raise StorageError(f"{MAX_IDS_COUNT} ids were taken already, the last is {ledger_id}")

    def _written(
        self,
        ledger: LedgerInUse,
        listener: LedgerListener,
        options: LedgerOptions,
        flags: RequestFlags = RequestFlags.NONE,
    ) -> LedgerWriter:
        writer = BookKeeperWriter(
            self._cluster, ledger, listener, self._on_writer_over, self._ahead, flags=flags
        )
        self._writers[writer] = options
        return writer

    async def create_chosen(
        self, ledger_id: int, listener: LedgerListener, options: LedgerOptions
    ) -> LedgerWriter:
        """Record a ledger with that id, to be written from its first entry, again if need be.

        What an earlier attempt left on bookies is overwritten with the same. Its record gives way
        in one step, so that bookies never miss it and collect what is written now. Entries go as
        those of a recovery do, which are taken where a repair fenced the ledger meanwhile.
        """
        self._check_open()
        fitting, bookie_ids = await self._cluster.ensembles.new(
            options, self.limits.answer_timeout_seconds
        )
        metadata = LedgerMetadata.new(fitting, bookie_ids)
        records = self._cluster.records

        def decide(before: LedgerMetadata) -> LedgerMetadata:
            check_same_owner(ledger_id, before.custom_metadata, options.custom_metadata)
            return metadata

        async with in_time(self._cluster, ledger_id):
            recorded = await records.create(ledger_id, metadata)
            if recorded is None:
                known = await records.read(ledger_id, is_synced=True)
                recorded = await records.change(ledger_id, known, decide)
        ledger = LedgerInUse(ledger_id, recorded, options.password)
        return self._written(ledger, listener, options, frames.RECOVERY_ADD)

    def _on_writer_over(self, writer: BookKeeperWriter) -> None:
        self._writers.pop(writer, None)

    async def open(self, ledger_id: int, *, password: bytes = b"") -> LedgerReader:
        """Ask the bookies how far it is confirmed, unless it is closed."""
        self._check_open()

        async def ask() -> LedgerReader:
            recorded = await self._cluster.records.read(ledger_id)
            ledger = LedgerInUse(ledger_id, recorded, password)
            end, length_bytes = await find_end(self._cluster, ledger)
            return BookKeeperReader(self._cluster, ledger, end, length_bytes, self._ahead)

        return await repeated(self._cluster, ledger_id, ask)

    async def recover(self, ledger_id: int, *, password: bytes = b"") -> LedgerReader:
        """Fence the ledger and close it, unless it is closed.

        A record that is read late does no harm: a ledger that is closed stays so, and changes of
        any other record find out.
        """
        self._check_open()

        async def attempt() -> LedgerInUse:
            recorded = await self._cluster.records.read(ledger_id)
            ledger = LedgerInUse(ledger_id, recorded, password)
            await recover(self._cluster, ledger)
            return ledger

        ledger = await repeated(self._cluster, ledger_id, attempt)
        metadata = ledger.recorded.metadata
        return BookKeeperReader(
            self._cluster, ledger, metadata.last_entry_id, metadata.length_bytes, self._ahead
        )

    async def delete(self, ledger_id: int) -> None:
        """Delete a ledger's metadata."""
        self._check_open()
        async with in_time(self._cluster, ledger_id):
            await self._cluster.records.delete(ledger_id)

    async def list_ledgers(self) -> AsyncIterator[Sequence[int]]:
        """The ids of all ledgers, as their metadata has them."""
        self._check_open()
        async for page in self._cluster.records.ids():
            yield page

    async def custom_metadata(self, ledger_id: int) -> Mapping[str, bytes]:
        """A ledger's labels."""
        return (await self.info(ledger_id)).custom_metadata

    async def info(self, ledger_id: int) -> LedgerInfo:
        """A ledger's state, as its metadata has it."""
        self._check_open()
        async with in_time(self._cluster, ledger_id):
            metadata = (await self._cluster.records.read(ledger_id)).metadata
        return LedgerInfo(
            ledger_id=ledger_id,
            is_closed=metadata.is_closed,
            last_entry_id=metadata.last_entry_id if metadata.is_closed else None,
            length_bytes=metadata.length_bytes if metadata.is_closed else None,
            custom_metadata=metadata.custom_metadata,
        )

    def copies_of(self, options: LedgerOptions) -> int:
        """The size of the write quorum."""
        return options.write_quorum_size

    def figures(self) -> Mapping[str, float]:
        """What the store holds now, and what happened since it was connected."""
        bookies, ensembles, counters = (
            self._cluster.bookies, self._cluster.ensembles, self._cluster.counters,
        )  # fmt: skip
        return {
            "pinned_bytes": self._cluster.pinned.now_bytes,
            "waiting_bytes": bookies.waiting_bytes,
            "connected_bookies": bookies.connected_count,
            "read_ahead_bytes": self._ahead.held_bytes,
            "open_writers": len(self._writers),
            "open_ledgers_below_policy": sum(
                writer.ensemble_size < policy.ensemble_size
                for writer, policy in self._writers.items()
            ),
            "reduced_ensembles_count": ensembles.reduced_count,
            "waiting_ledgers": ensembles.waiting_count,
            "quarantines_count": bookies.health.quarantines_count,
            "explicit_lac_failures_count": self._cluster.explicit_lacs.failures_count,
            **asdict(counters),
        }

    def bookies(self) -> Sequence[RemoteBookieStatistics]:
        """The figures of each bookie that was used, by id."""
        return self._cluster.bookies.statistics()

    def labelled_figures(self) -> Iterator[tuple[str, Mapping[str, str], float]]:
        """The statistics of each bookie, as labelled figures."""
        for statistics in self.bookies():
            yield from labelled(statistics)

    async def close(self) -> None:
        """Fail what waits, and end all connections. May be called again."""
        self._is_closed = True
        for writer in list(self._writers):
            writer.abandon()
        await self._tasks.close()
        self._cluster.explicit_lacs.close()
        await self._cluster.bookies.close()
        self._registry.close()
