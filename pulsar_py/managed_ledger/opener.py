"""`ManagedLedgerOpener`: opens each managed ledger once, and owns what all of them share (edge).

Opening reads the list of ledgers. If the last one was not closed, its former owner died or still
runs: the ledger is recovered, which fences that owner. The list is written with compare-and-set in
any case: a former owner that still runs, without an open ledger that could be fenced, finds another
version with its next change. Records of cursors are read after that write, for the former owner
changes them only while the list is its own; meanwhile the last ledger is recovered. Its end is in
memory only until the list is written the next time: who opens it before then recovers it once more,
which finds the same end. The next ledger is created at the first append; only a new managed
ledger gets its first one at once, so that every position has a ledger.

What always holds: two opens of one name give the same object; a name that is being closed is opened
again only after that.

Source: ManagedLedgerFactoryImpl and ManagedLedgerImpl.initialize in Pulsar's managed-ledger.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from pulsar_py.common.errors import (
    LedgerNotFoundError,
    ManagedLedgerClosedError,
    ManagedLedgerError,
    MetadataError,
    MetadataNotFoundError,
    StorageError,
)
from pulsar_py.common.loops.clock import Clock
from pulsar_py.common.loops.concurrently import each_result
from pulsar_py.ledgers.store import LedgerStore
from pulsar_py.managed_ledger.cursors.flusher import CursorFlusher
from pulsar_py.managed_ledger.cursors.memory import DEFAULT_LIMIT_BYTES, CursorMemory
from pulsar_py.managed_ledger.cut_short_deletions import NAMES_AT_ONCE, CutShortDeletions
from pulsar_py.managed_ledger.log.config import ManagedLedgerConfig
from pulsar_py.managed_ledger.log.entry_cache import EntryCacheManager
from pulsar_py.managed_ledger.log.ledger_format import (
    ROOT,
    LedgerList,
    decode_ledger_list,
    decode_name,
    encode_ledger_list,
    is_deletion_begun,
    ledger_path,
)
from pulsar_py.managed_ledger.log.list_deletion import remove_marked
from pulsar_py.managed_ledger.log.owned_record import OwnedRecord
from pulsar_py.metadata.store import MUST_NOT_EXIST, MetadataStore, Versioned

if TYPE_CHECKING:
    from pulsar_py.managed_ledger.cursors.registry import StoredCursor
    from pulsar_py.managed_ledger.managed_ledger import ManagedLedger

    Ledger = ManagedLedger[Any]  # Any: the listener's owner knows the type of contexts


logger = logging.getLogger(__name__)

RECOVERIES_AT_ONCE = 16
"""Cursor ledgers of one topic that are fenced and read at the same time while it is opened."""
CHECKS_AT_ONCE = 32

DEFAULT_CACHE_SIZE_BYTES = 64 * 1024 * 1024

CheckRecord = Callable[[bytes], None]
"""Raises for a stored list of ledgers that must not be opened."""


class ManagedLedgerOpener:
    """Opens, shares, closes and deletes managed ledgers. One a broker.

    Pulsar's ManagedLedgerFactoryImpl.
    """

    def __init__(
        self,
        ledger_store: LedgerStore,
        metadata: MetadataStore,
        clock: Clock,
        *,
        chance: random.Random,
        cache_size_bytes: int = DEFAULT_CACHE_SIZE_BYTES,
        cache_eviction_watermark: float = 0.9,
        cache_max_age_seconds: float = 1.0,
        cache_eviction_interval_seconds: float = 0.05,
        cursor_memory_bytes: int = DEFAULT_LIMIT_BYTES,
        owns: Callable[[str], Awaitable[bool]] | None = None,
        check_owner: Callable[[str], None] | None = None,
        may_change: Callable[[], bool] | None = None,
    ) -> None:
        """`cache_size_bytes` bounds all entry caches together; 0 switches them off.

        `cursor_memory_bytes` bounds the stored acknowledgements that large cursors keep in memory.

        `chance` spreads the rollover times.

        `owns` is called when a ledger of a managed ledger was fenced, and returns whether this
        process still owns the managed ledger; it raises MetadataError if that is unknown. None:
        this process owns all of them.

        `check_owner` is called before each change of the metadata, and raises
        MetadataUnavailableError while another process may own the managed ledger.

        `may_change` returns whether the metadata can be changed now, as far as is known; while it
        can't, full ledgers grow on. None: it always can.
        """
        self.ledger_store = ledger_store
        self.metadata = metadata
        self.clock = clock
        self.chance = chance
        self.owns = owns or _owns_everything
        self.check_owner = check_owner or _is_never_in_doubt
        self.may_change = may_change or _is_always_there
        self.deletions = CutShortDeletions(metadata)
        self.flusher = CursorFlusher(clock)
        self.cursor_memory = CursorMemory(cursor_memory_bytes)
        self.cache_manager = EntryCacheManager(
            clock,
            budget_bytes=cache_size_bytes,
            watermark=cache_eviction_watermark,
            max_age_seconds=cache_max_age_seconds,
            eviction_interval_seconds=cache_eviction_interval_seconds,
        )
        self._ledgers: dict[str, Ledger] = {}  # open ones, and those being closed
        self._locks: dict[str, tuple[asyncio.Lock, int]] = {}  # names being opened; waiting ones
        self._is_closed = False

    @property
    def ledgers(self) -> list[Ledger]:
        """All managed ledgers that are open now."""
        return list(self._ledgers.values())

    async def open(
        self,
        name: str,
        config: ManagedLedgerConfig,
        *,
        create_if_missing: bool = True,
        check_record: CheckRecord | None = None,
    ) -> Ledger:
        """The managed ledger `tenant/namespace/persistent/local`; the same object while it is open.

        `check_record` gets the stored list before anything of it is opened, and may raise.

        Raises:
            MetadataNotFoundError: It does not exist and must not be created.
            ManagedLedgerFencedError: Another owner opened it at the same time.
            StorageError, MetadataError: It could not be opened; trying again may help.
        """
        async with self._locked(name):
            ledger = self._ledgers.get(name)
            if ledger is not None and not ledger.is_closed:
                return ledger
            if ledger is not None:
                await ledger.wait_closed()
            self._raise_if_closed()
            with self.flusher.opening():
                ledger = await self._load(
                    name, config, create_if_missing=create_if_missing, check_record=check_record
                )
            self._ledgers[name] = ledger
            return ledger

    @asynccontextmanager
    async def _locked(self, name: str) -> AsyncIterator[None]:
        """A context of which one for each name is entered at a time."""
        lock, users = self._locks.get(name, (asyncio.Lock(), 0))
        self._locks[name] = (lock, users + 1)
        try:
            async with lock:
                yield
        finally:
            _, users = self._locks[name]
            if users == 1:
                del self._locks[name]
            else:
                self._locks[name] = (lock, users - 1)

    async def _load(
        self,
        name: str,
        config: ManagedLedgerConfig,
        *,
        create_if_missing: bool,
        check_record: CheckRecord | None,
    ) -> Ledger:
        path = ledger_path(name)
        # An unanswered write of this broker, from before it last closed this managed ledger, has
        # been made by the end of this call, or never will be. Made later, it would look like
        # another owner's.
        found = await self.metadata.get_newest(path)
        if found is None:
            if not create_if_missing:
                raise MetadataNotFoundError(f"managed ledger {name} does not exist")
            if await self.metadata.children(path):  # of cursors, left over or made late
                await self._end_deletion(name, None)
            return await self._create(name, config, MUST_NOT_EXIST)
        if check_record is not None:
            check_record(found.value)
        stored = decode_ledger_list(found.value)
        if stored.is_being_deleted:
            # A deletion was interrupted: it is finished first.
            await self._end_deletion(name, found)
            if not create_if_missing:
                raise MetadataNotFoundError(f"managed ledger {name} does not exist")
            return await self._create(name, config, MUST_NOT_EXIST)
        ledger = self._new_ledger(name, config, stored, found.version)
        await self._take_over(ledger, stored)
        return ledger

    def _new_ledger(
        self, name: str, config: ManagedLedgerConfig, stored: LedgerList, version: int
    ) -> Ledger:
        from pulsar_py.managed_ledger.managed_ledger import (  # noqa: PLC0415 - at first use
            ManagedLedger,
        )

        return ManagedLedger(name, config, self, stored, version=version)

    async def _take_over(self, ledger: Ledger, stored: LedgerList) -> None:
        """Keep a former owner from changing anything, and recover what it left."""
        cursors: list[StoredCursor] = []

        async def read_cursors() -> None:
            # Written even if unchanged: a former owner that still runs finds another version then.
            async with ledger.ledger_list.lock:
                await ledger.ledger_list.write(stored)
            cursors.extend(await self._stored_cursors(ledger))

        async def end_last_ledger() -> None:
            await self._end_last_ledger(ledger)

        await each_result(lambda work: work(), (end_last_ledger, read_cursors))
        if not ledger.ledgers.ledgers:
            await ledger.create_first_ledger()
        for cursor in cursors:
            ledger.restore_cursor(cursor)

    async def _stored_cursors(self, ledger: Ledger) -> list[StoredCursor]:
        names = await self.metadata.children(ledger_path(ledger.name))
        return await each_result(
            lambda segment: ledger.read_cursor(decode_name(segment)),
            names,
            at_once=RECOVERIES_AT_ONCE,
        )

    async def _end_deletion(self, name: str, marked: Versioned | None) -> None:
        """Remove a list that says that it is being deleted; None: there is none, mark one first."""

        def check_owner() -> None:
            self.check_owner(name)

        record = OwnedRecord(self.metadata, ledger_path(name), check_owner=check_owner)
        if marked is None:
            from pulsar_py.managed_ledger.managed_ledger import (  # noqa: PLC0415 - at first use
                MARK_BITS,
            )

            owner_mark = f"{self.chance.getrandbits(MARK_BITS):x}"
            doomed = LedgerList(is_being_deleted=True, owner_mark=owner_mark)
            await record.write(encode_ledger_list(doomed))
        else:
            record.found(marked)
        await remove_marked(self.metadata, record, check_owner)

    async def _create(self, name: str, config: ManagedLedgerConfig, version: int) -> Ledger:
        ledger = self._new_ledger(name, config, LedgerList(), version)
        await ledger.create_first_ledger()
        return ledger

    async def _end_last_ledger(self, ledger: Ledger) -> None:
        """Recover the last ledger if its owner did not close it."""
        ledgers, config = ledger.ledgers, ledger.config
        if not ledgers.ledgers or ledgers.last_ledger.is_closed:
            return
        ledger_id = ledgers.last_ledger.ledger_id
        try:
            reader = await self.ledger_store.recover(
                ledger_id, password=config.ledger_options.password
            )
        except LedgerNotFoundError:
            if not config.skips_non_recoverable_data:
                raise
            ledgers.last_ledger_lost()
            return
        entries_count, size_bytes = reader.last_add_confirmed + 1, reader.length_bytes
        ledgers.ledger_closed(entries_count, size_bytes, self.clock.wall_time_millis())
        await reader.close()
        logger.info("ledger recovered", extra={"ledger_id": ledger_id, "entries": entries_count})

    def on_ledger_closed(self, ledger: Ledger) -> None:
        """Forget a managed ledger that is closed or deleted, so that it may be opened again."""
        if self._ledgers.get(ledger.name) is ledger:
            del self._ledgers[ledger.name]

    async def delete(self, name: str, config: ManagedLedgerConfig) -> None:
        """Delete a managed ledger for good, open or not.

        Raises:
            MetadataNotFoundError: There is none.
        """
        ledger = await self.open(name, config, create_if_missing=False)
        await ledger.delete()

    async def exists(self, name: str) -> bool:
        """Whether it exists, and is not being deleted."""
        found = await self.metadata.get(ledger_path(name))
        return found is not None and not is_deletion_begun(found.value)

    async def list_names(self, prefix: str) -> list[str]:
        """Full names of the managed ledgers in `tenant/namespace/persistent`, sorted.

        Those that are being deleted are left out, as far as that is known.
        """
        path = ledger_path(prefix)
        children = await self.metadata.children(path)
        deleted = await self.deletions.below(path)
        return [f"{prefix}/{child}" for child in children if child not in deleted]

    async def named_ledgers(self) -> set[int]:
        """Ids of all ledgers that metadata names, for a collector to compare with the store's."""
        await self.metadata.sync(ROOT)  # without it, reads might miss a ledger named just before
        named: set[int] = set()
        for paths in await self.deletions.domains():
            ledgers = await self.deletions.children(paths)
            by_lists = await each_result(self._named_by_list, ledgers, at_once=NAMES_AT_ONCE)
            named.update(*(ids for ids in by_lists if ids is not None))
            whole = [path for path, ids in zip(ledgers, by_lists, strict=True) if ids is not None]
            cursors = await self.deletions.children(whole)
            named.update(*await each_result(self._named_by_cursor, cursors, at_once=NAMES_AT_ONCE))
        return named

    async def _named_by_list(self, path: str) -> list[int] | None:
        """Ids of the ledgers in a list; None if it is being deleted, with all its cursors."""
        found = await self.metadata.get(path)
        if found is None:
            return []
        stored = decode_ledger_list(found.value)
        if stored.is_being_deleted:
            self.deletions.note(path)
            return None
        return [record.ledger_id for record in stored.ledgers]

    async def _named_by_cursor(self, path: str) -> list[int]:
        found = await self.metadata.get(path)
        if found is None:
            return []
        from pulsar_py.managed_ledger.cursors.format import (  # noqa: PLC0415 - at first use
            NO_LEDGER,
            decode_cursor_record,
            owned_ledgers,
        )

        record = decode_cursor_record(found.value)
        named = owned_ledgers(record.snapshot.properties, record.cursor_properties)
        return named if record.cursor_ledger_id == NO_LEDGER else [*named, record.cursor_ledger_id]

    async def check_ledgers(self) -> None:
        """Roll and trim ledgers that are due by age; to be called periodically."""
        await each_result(_check, self.ledgers, at_once=CHECKS_AT_ONCE)

    async def close(self) -> None:
        """Close all managed ledgers; later calls of `open` raise ManagedLedgerClosedError."""
        self._is_closed = True
        results = await asyncio.gather(
            *(ledger.close() for ledger in self.ledgers), return_exceptions=True
        )
        self.flusher.close()
        self.cache_manager.close()
        for result in results:
            if isinstance(result, Exception):
                logger.warning("managed ledger not closed cleanly", exc_info=result)

    def _raise_if_closed(self) -> None:
        if self._is_closed:
            raise ManagedLedgerClosedError("no managed ledger can be opened any more")


async def _check(ledger: Ledger) -> None:
    """Roll and trim one managed ledger, if it is due by age."""
    try:
        if not ledger.is_closed and not ledger.is_fenced:
            await ledger.roll_if_due()
            await ledger.trim()
    except (ManagedLedgerError, MetadataError, StorageError) as error:
        logger.warning(
            "managed ledger not checked", extra={"topic": ledger.name, "error": str(error)}
        )


async def _owns_everything(_: str) -> bool:
    return True


def _is_always_there() -> bool:
    return True


def _is_never_in_doubt(_: str) -> None:
    return
