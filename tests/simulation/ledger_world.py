"""The world of one seed: hostile stores, owners that live and die, and weather that is drawn."""

from __future__ import annotations

import asyncio
import logging
import random
from collections import Counter
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import replace
from typing import Any

from msgspec import structs

from pulsar_py.common.errors import (
    MetadataError,
    MetadataExistsError,
    MetadataNotFoundError,
    MetadataOutcomeUnknownError,
    SessionInDoubtError,
)
from pulsar_py.common.position import Position
from pulsar_py.ledgers.store import LedgerOptions, StoreLimits
from pulsar_py.managed_ledger.log.config import ManagedLedgerConfig
from pulsar_py.managed_ledger.managed_ledger import ManagedLedger
from pulsar_py.managed_ledger.opener import ManagedLedgerOpener
from pulsar_py.metadata.ledger_ids import MetadataLedgerIds
from pulsar_py.metadata.store import MUST_NOT_EXIST, MetadataLimits
from pulsar_py.server.ledger_collector import LedgerCollector
from pulsar_py.testing.clock import VirtualClock
from pulsar_py.testing.hostile_ledgers import HostileLedgers, LedgerFaults
from pulsar_py.testing.hostile_metadata import HostileMetadata
from pulsar_py.testing.hostile_service import HostileSettings
from tests.simulation.ledger_judge import CLUSTER, FENCED, ORDER, PROCESS, LedgerJudge

TOPICS = ("t/n/persistent/a", "t/n/persistent/b")
SESSION_SECONDS = 8.0
STORE_LIMITS = StoreLimits(
    max_entry_bytes=1_000, max_pinned_bytes=4_000, answer_timeout_seconds=4.0
)
METADATA_LIMITS = MetadataLimits(
    max_value_bytes=100_000, max_children_bytes=100_000, operation_timeout_seconds=5.0
)
CONFIG = ManagedLedgerConfig(
    max_entries_per_ledger=4,
    minimum_rollover_seconds=0.0,
    cursor_persist_interval_seconds=0.2,
    cursor_max_entries_per_ledger=4,
    creation_failure_backoff_seconds=1.0,
    unavailable_backoff_seconds=0.3,
    ledger_creation_timeout_seconds=8.0,
    ledger_options=LedgerOptions(password=b"secret"),
    cluster=CLUSTER,
)
SILENT_SEEDS = 0.2
"""The share of seeds in which the metadata service does not answer some calls at all."""
RECEIPT_SEEDS = 0.2
"""The share of seeds in which acknowledgements ask for receipts: cursors write what has changed."""
COLLECTED_AFTER_SECONDS = 120.0  # while owners work: longer than any name takes to come


def draw_ledger_faults(chance: random.Random) -> LedgerFaults:
    """The weather over the bookies."""
    storm = LedgerFaults.storm()
    return chance.choice(
        (
            LedgerFaults(),
            LedgerFaults.delays(0.01),
            storm,
            storm,
            replace(storm, repair_share=0.05, late_fence_share=0.6),
            replace(
                storm, unavailable_share=0.2, busy_share=0.2, no_room_share=0.2, silent_share=0.02
            ),
            replace(
                storm,
                create_unknown_share=0.3,
                recover_unknown_share=0.3,
                close_unknown_share=0.4,
                delete_unknown_share=0.4,
            ),
        )
    )


def draw_metadata_settings(chance: random.Random) -> HostileSettings:
    """The weather over the metadata."""
    calm = HostileSettings(
        session_timeout_seconds=SESSION_SECONDS,
        limits=METADATA_LIMITS,
        are_parents_keys=chance.random() < 0.5,
        delay_seconds=chance.choice(((0.0, 0.0), (0.001, 0.02), (0.0, 0.4))),
        lag_seconds=chance.choice((0.0, 0.0, 0.3, 1.5)),
    )
    return chance.choice(
        (
            calm,
            replace(calm, unknown_share=0.05, unavailable_share=0.02, partial_delete_share=0.3),
            replace(calm, unknown_share=0.3, partial_delete_share=0.5),
            replace(
                calm,
                unknown_share=0.05,
                partial_delete_share=0.3,
                outage_every_seconds=15.0,
                expire_every_seconds=40.0,
            ),
        )
    )


def mark_tasks(loop: asyncio.AbstractEventLoop) -> None:
    """Have every task know whose it is."""
    inner = loop.get_task_factory()
    assert inner is not None

    def marked(loop: asyncio.AbstractEventLoop, work: Any, **options: Any) -> Any:
        task: Any = inner(loop, work, **options)
        context = options.get("context")
        task.process = PROCESS.get(None) if context is None else context.get(PROCESS)
        return task

    loop.set_task_factory(marked)


class Ledgers(HostileLedgers):
    """The bookies; they tell what is deleted."""

    judge: LedgerJudge

    def delete(self, ledger_id: int) -> None:
        self.judge.on_ledger_deleted(ledger_id)
        super().delete(ledger_id)


class Ownership:
    """Who has which topic: one ephemeral key each. A stand-in for the bundles of a broker."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._metadata = process.metadata
        self._sessions: dict[str, str] = {}  # by topic, the one under which it was taken
        self._locks = {each: asyncio.Lock() for each in TOPICS}  # one takes or gives up at a time
        self._releases: Counter[str] = Counter()  # how often each was given up
        self.is_stale = False  # answers from memory: it has not heard that it lost anything

    @staticmethod
    def path(name: str) -> str:
        return f"/namespace/{name.replace('/', '-')}"

    async def acquire(self, name: str) -> bool:
        """Whether it is ours now."""
        async with self._locks[name]:
            return await self._acquire(name)

    async def _acquire(self, name: str) -> bool:
        path, session = self.path(name), await self._metadata.open_session()
        try:
            session_id = session.session_id
            await self._metadata.put(path, b"", expected_version=MUST_NOT_EXIST, session=session)
        except (MetadataExistsError, MetadataOutcomeUnknownError):
            if not await self._is_stored(name):
                return False
            session_id = session.session_id
        self._sessions[name] = session_id
        return await self.has(name)

    async def has(self, name: str) -> bool:
        """Whether it was taken under a session that goes on. Never asks the store."""
        return (await self._metadata.open_session()).is_good and await self.session_of(name) != ""

    async def session_of(self, name: str) -> str:
        """Under which session it was taken, if that goes on and it was not given up; else nothing.

        It is another one after it was given up and taken again.
        """
        session_id = (await self._metadata.open_session()).session_id
        is_ours = self._sessions.get(name) == session_id
        return f"{session_id} {self._releases[name]}" if is_ours else ""

    async def _is_stored(self, name: str) -> bool:
        session = await self._metadata.open_session()
        await self._metadata.sync(self.path(name))
        found = await self._metadata.get(self.path(name))
        return found is not None and found.owner == session.session_id

    async def owns(self, name: str) -> bool:
        """What managed ledgers ask."""
        if self.is_stale:
            return True
        session = await self._metadata.open_session()
        if not session.is_good:
            raise SessionInDoubtError(f"{self._process.name} may have lost {name}")
        return await self._is_stored(name)

    def is_known(self, name: str) -> bool:
        """Whether the key is this session's, as nobody but a judge can know."""
        stored = self._metadata.service._tree.get(self.path(name))
        return stored is not None and stored.owner == self._sessions.get(name)

    async def release(self, name: str) -> None:
        """Let others have it."""
        async with self._locks[name]:
            await self._release(name)

    async def _release(self, name: str) -> None:
        self._sessions.pop(name, None)
        self._releases[name] += 1
        try:
            if await self._is_stored(name):
                await self._metadata.delete(self.path(name))
        except MetadataNotFoundError:
            return


class Listener:
    """One opened topic's producer side; contexts are the entries' bytes."""

    def __init__(self, process: Process, ledger: ManagedLedger) -> None:
        self._process = process
        self._judge = process.world.judge
        self._ledger = ledger
        self._name = ledger.name
        self._last_number = -1
        self.failed: set[bytes] = set()

    def on_appended(self, ledger_id: int, first_entry_id: int, contexts: list[bytes]) -> None:
        for entry_id, data in enumerate(contexts, first_entry_id):
            position = Position(ledger_id, entry_id)
            self._judge.on_appended(self._name, position, data)
            number = int(data.split()[1])
            in_order = number > self._last_number and data not in self.failed
            self._judge.expect(ORDER, holds=in_order, detail=(self._name, position, data))
            self._last_number = number

    def on_append_failed(self, contexts: list[bytes], error: Exception) -> None:
        self.failed.update(contexts)

    def on_fenced(self, error: Exception) -> None:
        is_newest = self._judge.is_newest(self._process, self._ledger)
        has_it = self._process.ownership.is_known(self._name)
        if self._name in self._judge.crossed:
            return
        detail = (self._name, self._process.name, error)
        self._judge.expect(FENCED, holds=not (is_newest and has_it), detail=detail)


class Process:
    """An owner: clients of both services, and an opener. It dies without a word or is closed."""

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name
        self.clock = VirtualClock()
        self.context = copy_context()
        self.context.run(PROCESS.set, self)
        self.metadata = world.metadata.connect(name, self.clock)
        self.ledger_ids = MetadataLedgerIds(self.metadata)
        self.store = world.ledgers.connect(name, self.ledger_ids)
        self.ownership = Ownership(self)
        self.opener = ManagedLedgerOpener(
            self.store,
            self.metadata,
            self.clock,
            chance=world.chance,
            owns=self.ownership.owns,
        )
        self.collector = self.new_collector(COLLECTED_AFTER_SECONDS)
        # Topics, as its workload has them, and the sessions under which they were taken.
        self.open: dict[str, Any] = {}
        self.taken: dict[str, str] = {}
        self.opened_under: dict[ManagedLedger[Any], str] = {}
        self.is_dead = False

    def __str__(self) -> str:
        return self.name

    def new_collector(self, minimum_age_seconds: float) -> LedgerCollector:
        return LedgerCollector(
            self.store,
            [self.opener.named_ledgers],
            self.clock,
            cluster=CLUSTER,
            minimum_age_seconds=minimum_age_seconds,
        )

    def spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """A task of this process."""
        return asyncio.get_running_loop().create_task(work, context=self.context.copy())

    def tasks(self) -> list[asyncio.Task[Any]]:
        """All that runs of it."""
        return [task for task in asyncio.all_tasks() if getattr(task, "process", None) is self]

    def freeze(self) -> None:
        self.metadata.freeze()
        self.store.freeze()

    def thaw(self) -> None:
        self.context.copy().run(self.store.thaw)
        self.context.copy().run(self.metadata.thaw)

    def crash(self) -> None:
        """Nothing of it happens any more."""
        self.is_dead = True
        self.store.cut_off()
        self.metadata.cut_off()
        self.opener.flusher.close()
        self.opener.cache_manager.close()
        for task in sorted(self.tasks(), key=hash):
            task.cancel()

    async def close(self) -> None:
        """End it as a process that is told to."""
        await self.opener.close()
        for name in TOPICS:
            try:
                await self.ownership.release(name)
            except MetadataError:
                continue  # it goes with the session
        await self.ledger_ids.close()
        await self.store.close()
        await self.metadata.close()


class World:
    """What all processes share."""

    def __init__(self, seed: int) -> None:
        self.chance = chance = random.Random(f"ledgers {seed}")
        settings = draw_metadata_settings(chance)
        if random.Random(f"silent {seed}").random() < SILENT_SEEDS:
            settings = replace(settings, silent_share=0.01)
        self.metadata = HostileMetadata(chance, VirtualClock(), settings)
        self.ledgers = Ledgers(chance, draw_ledger_faults(chance), limits=STORE_LIMITS)
        self.judge = LedgerJudge(self.metadata.service, self.ledgers)
        self.ledgers.judge = self.judge
        self.processes: list[Process] = []  # living ones
        self.numbers = 0  # of entries
        self.counts: Counter[str] = Counter()  # disturbances
        self.config = structs.replace(
            CONFIG,
            max_ranges_in_cursor_entry=chance.choice((1, 1000)),
            max_unacked_ranges_to_persist_in_metadata=chance.choice((0, 2, 1000)),
            retention_size_bytes=chance.choice((0, 0, 400)),
        )
        # Drawn apart: seeds without it stay what they were.
        self.has_receipts = random.Random(f"receipts {seed}").random() < RECEIPT_SEEDS
        if self.has_receipts:
            self.config = structs.replace(
                self.config, cursor_max_entries_per_ledger=40, max_ranges_in_cursor_entry=1
            )

    def start(self, name: str) -> Process:
        process = Process(self, name)
        self.processes.append(process)
        return process

    def crash(self, process: Process) -> None:
        self.processes.remove(process)
        process.crash()

    def repair(self) -> None:
        """Somebody who owns nothing fences an open ledger, to repair a replica."""
        ids = [
            each.ledger_id
            for each in self.ledgers.ledgers.values()
            if each.end is None and each.gone_at_seconds is None
        ]
        if ids:
            self.ledgers.recover(self.ledgers.ledgers[self.chance.choice(ids)])

    def calm(self) -> None:
        """Nothing goes wrong any more; what went wrong still has effects."""
        self.ledgers.faults = LedgerFaults.delays(0.005)
        self.metadata.calm()
        for process in self.processes:
            process.thaw()


class _Errors(logging.Handler):
    """Keeps what failed in tasks that nobody awaits."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        self.found.append(f"{getattr(record, 'task', record.getMessage())}: {error!r}")


@contextmanager
def task_failures() -> Iterator[list[str]]:
    """What tasks died of; thousands of expected warnings are not even made."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    handler = _Errors()
    logger = logging.getLogger("pulsar_py")
    propagates, logger.propagate = logger.propagate, False
    logger.addHandler(handler)
    try:
        yield handler.found
    finally:
        logger.removeHandler(handler)
        logger.propagate = propagates
        logging.disable(before)
