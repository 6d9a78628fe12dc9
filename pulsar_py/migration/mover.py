"""`Mover`: moves `Contents` into a `MoveTarget`, and goes on where it was stopped (edge).

    1  the target says what comes from where (`/pulsar_py/migration`); brokers of ours stay away
    2  the generators of ids and of producers' names are moved beyond all that was ever given
    3  ledgers are copied with their ids, each closed, read back and compared; how far that is
       goes into the target now and then
    4  keys are written, parents first, and read back
    5  every cursor is recovered from both sides, and compared
    6  the target says that it is done

A crash anywhere leaves a target in which nothing that is there is wrong: the next call finds closed
ledgers, fills the open ones, and writes keys that are missing. Brokers of the other kind do not
know the key of step 1, so nobody starts them before.

Invariant: no key that names a ledger is written before that ledger was compared.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from pulsar_py.common.errors import MigrationError
from pulsar_py.common.loops.clock import Clock
from pulsar_py.common.loops.concurrently import each_result
from pulsar_py.ledgers.ids import LedgerIds
from pulsar_py.metadata import paths
from pulsar_py.metadata.ledger_ids import NUMBERS_COUNT, MetadataLedgerIds
from pulsar_py.metadata.move_progress import DONE, PATH, MoveProgress, read_progress
from pulsar_py.metadata.store import MUST_NOT_EXIST, MetadataStore
from pulsar_py.migration.cluster_contents import check_no_brokers
from pulsar_py.migration.cluster_names import ClusterNames
from pulsar_py.migration.contents import Contents, MoveTarget
from pulsar_py.migration.cursor_states import compared, cursor_states
from pulsar_py.migration.ledger_copy import copy_ledger
from pulsar_py.migration.moved_keys import (
    ROOTS,
    Existing,
    Fate,
    Home,
    Rewriting,
    fate_of,
    is_cursor,
    root_of,
)
from pulsar_py.migration.plan import Plan, refusals
from pulsar_py.migration.renumbering import Renumbering
from pulsar_py.migration.roles import options_of, password_of, role_of

IDS_AT_ONCE: Final = 500
LEDGERS_AT_ONCE: Final = 8
LEDGERS_A_NOTE: Final = 64
"""Ledgers after which the target's progress is written."""
KEYS_AT_ONCE: Final = 64
CURSORS_AT_ONCE: Final = 200
"""Cursors whose states are in memory at the same time, of both sides."""
RESERVATIONS: Final = 3
"""Tries to find ids for all ledgers that nobody else got meanwhile."""


class Mover:
    """One move; `plan` first, then `run`."""

    def __init__(
        self,
        contents: Contents,
        target: MoveTarget,
        clock: Clock,
        *,
        is_renumbered: bool = False,
        existing: Existing = Existing.REFUSE,
        on_copied: Callable[[int], None] = lambda _: None,
    ) -> None:
        """`on_copied` is told the bytes of each ledger that was copied and compared."""
        self._contents = contents
        self._target = target
        self._clock = clock
        self._is_renumbered = is_renumbered
        self._existing = existing
        self._on_copied = on_copied
        self._local = target.metadata.local
        self._progress: MoveProgress | None = None
        self._is_new = True

    # What would be done

    async def plan(self) -> Plan:
        """Look at both sides; nothing is written.

        Raises:
            MigrationError: Something else is being moved into the target.
            StorageError, MetadataError: It can't be read.
        """
        contents = self._contents
        self._progress = progress = await self._known_progress()
        is_renumbered = self._is_renumbered if progress is None else bool(progress.ledger_id_offset)
        facts = Plan(
            is_begun=progress is not None,
            is_done=progress is not None and progress.state == DONE,
            cluster=self._target.cluster,
            former_cluster=contents.cluster,
            is_renumbered=is_renumbered,
        )
        if facts.is_done:
            return facts
        await check_no_brokers(self._local)
        self._is_new = await self._has_no_ledgers() if progress is None else progress.is_new
        if progress is not None:
            self._existing = Existing(progress.existing)
        elif self._is_new and self._existing is Existing.REFUSE:
            self._existing = Existing.REPLACE  # what the cluster's initialization has made
        # The true offset is not known before ids are reserved; any shows whether it can be done.
        offset = progress.ledger_id_offset if progress is not None else int(is_renumbered)
        values = self._values(offset)
        fates = await self._fates(values)
        verified = 0 if progress is None else progress.verified_through
        return Plan(
            is_begun=facts.is_begun,
            cluster=facts.cluster,
            former_cluster=facts.former_cluster,
            is_renumbered=is_renumbered,
            ledgers=Counter(map(role_of, contents.ledgers.values())),
            verified=sum(ledger_id <= verified for ledger_id in contents.ledgers),
            fates=fates,
            next_ledger_id=contents.next_ledger_id,
            problems=[*self._obstacles(values), *refusals(fates)],
        )

    async def _known_progress(self) -> MoveProgress | None:
        """What an earlier call for the same contents has left; None without one.

        Raises:
            MigrationError: It was for others, and has not ended.
        """
        found = await read_progress(self._local)
        contents = self._contents
        if found is None:
            return None
        is_same = found.source == contents.instance
        if found.state == DONE:
            return found if is_same and found.fingerprint == contents.fingerprint else None
        if not is_same:
            raise MigrationError(
                f"{found.source} is being moved into {self._target.address}: end that first"
            )
        if found.fingerprint != contents.fingerprint:
            raise MigrationError(
                f"{contents.instance} has changed since it was begun to be moved into "
                f"{self._target.address}: a broker has served it. What is there does not go with "
                "it; begin anew in an empty target"
            )
        return found

    async def _has_no_ledgers(self) -> bool:
        async for page in self._target.store.list_ledgers():
            if page:
                return False
        return True

    def _obstacles(self, values: Mapping[str, bytes]) -> list[str]:
        contents, target = self._contents, self._target
        found = []
        if not self._is_new and not self._is_renumbered and self._progress is None:
            found.append(
                f"{target.address} has ledgers already, whose ids may be taken: --renumber gives "
                "those that are moved other ids, and says what that costs"
            )
        if contents.next_ledger_id >= NUMBERS_COUNT:
            found.append(f"ids of ledgers are beyond 31 bits: {contents.next_ledger_id}")
        limits = (target.metadata.local.limits, target.metadata.configuration.limits)
        largest = min(each.max_value_bytes for each in limits)
        found += [
            f"{path} has {len(value)} bytes, {target.address} takes {largest}"
            for path, value in values.items()
            if len(value) > largest
        ]
        return found

    def _values(self, offset: int) -> dict[str, bytes]:
        """The keys with their new values.

        Raises:
            CorruptDataError: One can't be read, and would have to be rewritten.
        """
        rewriting = Rewriting(Renumbering(offset), self._names)
        return {path: rewriting.value(path, value) for path, value in self._contents.keys.items()}

    @property
    def _names(self) -> ClusterNames:
        return ClusterNames(self._contents.cluster, self._target.cluster)

    async def _fates(self, values: Mapping[str, bytes]) -> dict[str, Fate]:
        async def fate(path: str) -> Fate:
            found = await self._home(path).get(path)
            value = None if found is None else found.value
            return fate_of(path, values[path], value, self._existing)

        found = await each_result(fate, values, at_once=KEYS_AT_ONCE)
        return dict(zip(values, found, strict=True))

    def _home(self, path: str) -> MetadataStore:
        root = root_of(path)
        assert root is not None, "it would not be moved"
        metadata = self._target.metadata
        return metadata.local if ROOTS[root] is Home.LOCAL else metadata.configuration

    # Doing it

    async def run(self, on_begin: Callable[[], Awaitable[None]]) -> None:
        """Move everything; returns when all is there, and was compared.

        `on_begin` is awaited before anything is written.

        Raises:
            MigrationError: What was written is not what was read.
            StorageError, MetadataError: It can't be read or written; another call goes on.
        """
        await on_begin()
        contents, target = self._contents, self._target
        progress = self._progress
        if progress is None:
            progress = MoveProgress(
                source=contents.instance,
                fingerprint=contents.fingerprint,
                cluster=contents.cluster,
                ledger_id_offset=await self._reserve() if self._is_renumbered else 0,
                existing=self._existing.value,
                is_new=self._is_new,
            )
            await self._note(progress)
        self._progress = progress
        await advance(target.ledger_ids, contents.next_ledger_id + progress.ledger_id_offset)
        producers = MetadataLedgerIds(self._local, paths.PRODUCER_NAME_PREFIX)
        try:
            await advance(producers, contents.next_producer_number)
        finally:
            await producers.close()
        renumbering = Renumbering(progress.ledger_id_offset)
        progress = await self._copy_ledgers(progress, renumbering)
        values = self._values(progress.ledger_id_offset)
        await self._write_keys(values)
        await self._compare_cursors(values, renumbering)
        await self._note(replace(progress, state=DONE))

    async def _reserve(self) -> int:
        """By how much ids become greater, so that nobody has one of them, or gets one."""
        target = self._target
        for _ in range(RESERVATIONS):
            offset = await target.ledger_ids.next()
            last = await advance(target.ledger_ids, offset + self._contents.next_ledger_id)
            if last >= NUMBERS_COUNT:
                break
            taken = False
            async for page in target.store.list_ledgers():
                taken |= any(offset < ledger_id <= last for ledger_id in page)
            if not taken:
                return offset
        raise MigrationError(
            f"{target.address} has no room for {self._contents.next_ledger_id} ids in a row: "
            "others make ledgers meanwhile, or 31 bits are used up"
        )

    async def _copy_ledgers(self, progress: MoveProgress, renumbering: Renumbering) -> MoveProgress:
        left = [each for each in self._contents.ledgers if each > progress.verified_through]

        async def copy(ledger_id: int) -> None:
            self._on_copied(await self._copy(ledger_id, renumbering))

        for first in range(0, len(left), LEDGERS_A_NOTE):
            some = left[first : first + LEDGERS_A_NOTE]
            await each_result(copy, some, at_once=LEDGERS_AT_ONCE)
            progress = replace(progress, verified_through=some[-1])
            await self._note(progress)
        return progress

    async def _copy(self, ledger_id: int, renumbering: Renumbering) -> int:
        contents, target = self._contents, self._target
        former = contents.ledgers[ledger_id]
        role = role_of(former)
        source = await contents.store.recover(
            ledger_id, password=password_of(role, contents.settings)
        )
        try:
            return await copy_ledger(
                source,
                target.store,
                renumbering.ledger_id(ledger_id),
                options=options_of(
                    role, target.settings, self._names.labels(renumbering.labels(former))
                ),
                rewrite=lambda entry_id, data: renumbering.entry(former, entry_id, data),
                clock=self._clock,
            )
        finally:
            await source.close()

    async def _note(self, progress: MoveProgress) -> None:
        self._progress = progress
        await self._local.put(PATH, progress.encode())

    async def _write_keys(self, values: Mapping[str, bytes]) -> None:
        fates = await self._fates(values)
        if texts := refusals(fates):
            raise MigrationError("; ".join(texts))
        for level in _levels(fates):
            await each_result(
                lambda path: self._put(path, values[path], fates[path]), level, at_once=KEYS_AT_ONCE
            )
        found = await self._fates(values)
        for path, fate in found.items():
            if fate is not Fate.THERE and not (fate is fates[path] is Fate.KEEP):
                raise MigrationError(f"{path} has another value than the one that was written")

    async def _put(self, path: str, value: bytes, fate: Fate) -> None:
        store = self._home(path)
        if fate is Fate.CREATE:
            found = await store.get(path)  # it may be a parent that was made on demand
            version = MUST_NOT_EXIST if found is None else found.version
            await store.put(path, value, expected_version=version)
        elif fate is Fate.REPLACE:
            await store.put(path, value)

    async def _compare_cursors(self, values: Mapping[str, bytes], renumbering: Renumbering) -> None:
        contents, target = self._contents, self._target
        cursors = [
            path for path in values if root_of(path) == paths.MANAGED_LEDGERS and is_cursor(path)
        ]
        for first in range(0, len(cursors), CURSORS_AT_ONCE):
            some = cursors[first : first + CURSORS_AT_ONCE]
            before = await cursor_states(
                {path: contents.keys[path] for path in some},
                contents.store, self._clock, contents.settings,
            )  # fmt: skip
            after = await cursor_states(
                {path: values[path] for path in some}, target.store, self._clock, target.settings
            )
            for path in some:
                if compared(path, before[path], renumbering) != compared(path, after[path]):
                    raise MigrationError(
                        f"{path}: the cursor stands at {after[path].mark_delete_position}, with "
                        "other acknowledgements than before"
                    )
            await asyncio.sleep(0)


async def advance(ids: LedgerIds, wanted: int) -> int:
    """Take ids until one is at least `wanted`; returns the last one."""
    last = await ids.next()
    while last < wanted:
        count = min(wanted - last, IDS_AT_ONCE)
        last = max(await each_result(lambda _: ids.next(), range(count), at_once=count))
    return last


def _levels(paths_in_order: Mapping[str, Fate]) -> Sequence[Sequence[str]]:
    """Paths by how deep they are: a parent is written before what is below it."""
    levels: dict[int, list[str]] = {}
    for path in paths_in_order:
        levels.setdefault(path.count("/"), []).append(path)
    return [levels[depth] for depth in sorted(levels)]
