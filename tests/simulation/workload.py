"""Random calls to topics and the engine in one life; what depends on chance depends on the seed."""

from __future__ import annotations

import asyncio
import hashlib
import random
from collections.abc import Awaitable, Callable

from pulsar_py.common.errors import (
    CorruptDataError,
    InvalidCursorPositionError,
    ManagedLedgerError,
    MetadataError,
    StorageError,
)
from pulsar_py.common.position import Position
from pulsar_py.managed_ledger.managed_ledger import InitialPosition
from pulsar_py.managed_ledger.opener import ManagedLedgerOpener
from pulsar_py.storage.bookie import Bookie
from tests.ledger_parts import all_ledgers
from tests.simulation.checks import (
    acknowledged,
    all_indexes,
    check_cursors,
    check_delivery,
    check_entries,
    check_not_back,
)
from tests.simulation.machine import Machine
from tests.simulation.model import (
    BATCH,
    CAUSE,
    DELETED,
    ENDS,
    NAMED,
    WORKS,
    Acks,
    CursorPromise,
    InvariantError,
    Listener,
    Model,
    TopicPromise,
)

TOPICS = ("t/n/persistent/a", "t/n/persistent/b", "t/n/persistent/c")
CURSORS = ("one", "two")
STUCK_AFTER_SECONDS = 900.0  # of virtual time
RECOVERY_SECONDS = 40.0  # after errors, of virtual time
MASKS = (0b110, 0b101, 0b011, 0b001, 0b100)
FAILURES = (StorageError, MetadataError, ManagedLedgerError)


class Life:
    """One process's calls."""

    def __init__(self, machine: Machine, model: Model, trace: hashlib._Hash, number: list[int]):
        self._machine = machine
        self._model = model
        self._trace = trace
        self._number = number  # of the last entry; goes on from life to life
        self._chance: random.Random = machine.chance
        self._open: dict[str, object] = {}
        self._bookie: Bookie
        self._opener: ManagedLedgerOpener
        self._steps: dict[Callable[[str], Awaitable[None]], int] = {
            self._append: 22,
            self._acknowledge: 14,
            self._acknowledge_cumulatively: 6,
            self._deliver: 5,
            self._flush_cursor: 6,
            self._reset: 4,
            self._delete_cursor: 2,
            self._roll: 3,
            self._trim: 4,
            self._close_topic: 4,
            self._delete_topic: 2,
            self._flush: 4,
            self._collect: 4,
            self._wait: 6,
        }

    async def run(self, steps_count: int, *, ends_cleanly: bool) -> None:
        """Start, make calls, and end cleanly or not at all."""
        if self._chance.random() < 0.3:
            self._machine.weather.change()
        self._bookie, self._opener = await self._machine.start()
        for _ in range(steps_count):
            if self._chance.random() < 0.2:
                self._machine.weather.change()
            step = self._chance.choices(list(self._steps), list(self._steps.values()))[0]
            await self._do(step, self._chance.choice(TOPICS))
        if self._chance.random() < 0.4:
            await self._recover()
        if ends_cleanly:
            await self._do(self._close, "")
        self._machine.weather.clear()

    async def _recover(self) -> None:
        """Once the disk is well again, everything works without a restart."""
        weather = self._machine.weather
        weather.clear()
        await asyncio.sleep(RECOVERY_SECONDS)
        weather.forget()
        name = self._chance.choice(TOPICS)
        await self._do(self._append_and_wait, name)
        if weather.seen:  # It may have been fenced: opened anew, it is not.
            await self._works_now(name)
        await self._do(self._flush, "")

    async def _works_now(self, name: str) -> None:
        try:
            await self._append_and_wait(name)
        except FAILURES as error:
            raise InvariantError(f"{WORKS}: {name}: {error!r}") from error

    async def run_last(self) -> None:
        """Start in fair weather and look at everything; then it has to work."""
        model = self._model
        self._bookie, self._opener = await self._machine.start()
        for name in TOPICS:
            if name not in model.topics:
                is_there = await self._opener.exists(name)
                model.require(DELETED, holds=not is_there, detail=f"{name} is back")
            await self._do(self._deliver, name)
            await self._do(self._append_and_wait, name)
        named = await self._opener.named_ledgers()
        missing = named - set(await all_ledgers(self._bookie))
        model.require(NAMED, holds=not missing, detail=missing)
        await self._do(self._close, "")

    async def _do(self, step: Callable[[str], Awaitable[None]], name: str) -> None:
        model, weather = self._model, self._machine.weather
        model.may_be_fenced = weather.may_fence
        self._trace.update(
            f"{step.__name__} {name} {self._machine.disk.write_points_count}".encode()
        )
        try:
            async with asyncio.timeout(STUCK_AFTER_SECONDS):
                await step(name)
        except TimeoutError:
            raise InvariantError(f"{ENDS}: {step.__name__} {name}") from None
        except FAILURES as error:
            # Bits are whole: damage has no cause.
            if not weather.seen or isinstance(error, CorruptDataError):
                raise InvariantError(f"{CAUSE}: {step.__name__} {name}: {error!r}") from error
            self._trace.update(repr(error).encode())
            model.held[CAUSE] += 1
        model.held[ENDS] += 1
        model.raise_violations()
        self._look_at_cursors()

    def _look_at_cursors(self) -> None:
        for name, ledger in self._open.items():
            for cursor_name, known in self._model.topics[name].cursors.items():
                cursor = ledger.cursors.get(cursor_name)
                if cursor is None or cursor.is_closed:
                    continue
                now = cursor.mark_delete_position
                check_not_back(f"{name} {cursor_name}", ledger, now, known.latest, self._model)
                known.latest = now
                if not known.is_in_doubt:
                    known.floor = max(known.floor, cursor.persistent_mark_delete_position)

    # Topics

    async def _opened(self, name: str):
        """The topic and all its cursors, checked against the promises when it is opened anew."""
        model = self._model
        ledger = self._open.get(name)
        if ledger is not None and not ledger.is_closed and not ledger.is_fenced:
            return ledger
        self._open.pop(name, None)
        if ledger is not None and not ledger.is_closed:
            await ledger.close()
        promise = model.topics.get(name)
        is_there = await self._opener.exists(name)
        if promise is not None and not is_there:
            model.require(DELETED, holds=promise.is_maybe_missing, detail=f"{name} is gone")
            promise = None
        elif promise is None:
            model.require(DELETED, holds=not is_there, detail=f"{name} is back")
        if promise is None:
            promise = model.topics[name] = TopicPromise(is_maybe_missing=True)
        ledger = await self._opener.open(name, self._machine.ledgers_config)
        promise.is_maybe_missing = False
        ledger.listener = Listener(name, model)
        await check_entries(name, ledger, model)
        check_cursors(name, ledger, model)
        self._open[name] = ledger
        for cursor_name in CURSORS[: self._chance.randint(1, 2)]:
            await self._open_cursor(name, ledger, cursor_name)
        return ledger

    async def _open_cursor(self, name: str, ledger, cursor_name: str) -> None:
        promise = self._model.topics[name]
        if cursor_name in promise.cursors and cursor_name in ledger.cursors:
            return
        known = promise.cursors[cursor_name] = CursorPromise(is_maybe_missing=True, is_placed=False)
        initial = self._chance.choice((InitialPosition.EARLIEST, InitialPosition.LATEST))
        cursor = await ledger.open_cursor(cursor_name, initial)
        known.is_maybe_missing, known.is_placed = False, True
        there = {each for each in promise.confirmed if ledger.contains(each)}
        known.memory = acknowledged(cursor, there)
        # What went before it was there can't wait for it.
        for position in promise.confirmed.keys() - there:
            known.memory |= all_indexes(position)
        known.latest = cursor.mark_delete_position
        known.written(set(known.memory), cursor.mark_delete_position)

    async def _with_cursor(self, name: str):
        """A topic, one of its cursors, and what is known about it; the cursor may be None."""
        ledger = await self._opened(name)
        known = self._model.topics[name].cursors
        usable = [each for each in sorted(known) if each in ledger.cursors]
        if not usable:
            await self._open_cursor(name, ledger, CURSORS[0])
            usable = [each for each in sorted(known) if each in ledger.cursors]
        cursor_name = self._chance.choice(usable)
        return ledger, ledger.cursors[cursor_name], known[cursor_name]

    def _there(self, name: str, ledger) -> list[Position]:
        return [each for each in self._model.topics[name].confirmed if ledger.contains(each)]

    async def _append(self, name: str) -> None:
        ledger = await self._opened(name)
        for _ in range(self._chance.randint(1, 8)):
            self._push(name, ledger)
        for _ in range(self._chance.choice((0, 3, 40))):
            await asyncio.sleep(0)

    def _push(self, name: str, ledger) -> None:
        data = self._next_entry(name)
        sent = self._model.topics[name].sent
        sent[data] = None
        try:
            ledger.append(data, data)
        except FAILURES:
            del sent[data]
            raise

    def _next_entry(self, name: str) -> bytes:
        self._number[0] += 1
        return b"%s %d " % (name.encode(), self._number[0]) * self._chance.randint(1, 9)

    async def _append_and_wait(self, name: str) -> None:
        ledger = await self._opened(name)
        data = self._next_entry(name)
        promise = self._model.topics[name]
        promise.sent[data] = None
        try:
            position = await ledger.append_and_wait(data)
        except FAILURES:
            promise.failed[data] = promise.sent.pop(data, None)
            raise
        promise.sent.pop(data, None)
        highest = self._model.highest.get(name)
        self._model.require(
            WORKS, holds=highest is None or position > highest, detail=(name, position, highest)
        )
        promise.confirmed[position] = data
        self._model.highest[name] = position

    async def _roll(self, name: str) -> None:
        await (await self._opened(name)).roll_ledger()

    async def _trim(self, name: str) -> None:
        ledger = await self._opened(name)
        written = self._states(name, ledger)
        await ledger.trim()
        for known, acks, mark_delete in written:
            known.written(acks, mark_delete)

    def _states(self, name: str, ledger) -> list[tuple[CursorPromise, Acks, Position]]:
        """States of all cursors, which a call that is about to begin makes durable."""
        return [
            (known, set(known.memory), ledger.cursors[cursor_name].mark_delete_position)
            for cursor_name, known in self._model.topics[name].cursors.items()
            if cursor_name in ledger.cursors
        ]

    async def _close_topic(self, name: str) -> None:
        ledger = await self._opened(name)
        written = self._states(name, ledger)
        self._open.pop(name)
        await ledger.close()
        if ledger._is_lost:  # another owner was met while it closed, so it wrote nothing more
            return
        for known, acks, mark_delete in written:
            known.written(acks, mark_delete)

    async def _delete_topic(self, name: str) -> None:
        ledger = await self._opened(name)
        self._open.pop(name)
        self._model.topics[name].is_maybe_missing = True
        await ledger.delete()
        del self._model.topics[name]

    # Cursors

    async def _acknowledge(self, name: str) -> None:
        ledger, cursor, known = await self._with_cursor(name)
        there = self._there(name, ledger)
        for position in self._chance.sample(there, min(len(there), 4)):
            mask = self._chance.choice((None, None, *MASKS))
            known.memory |= {
                (position, index) for index in range(BATCH) if mask is None or not mask >> index & 1
            }
            cursor.acknowledge([position], [None if mask is None else [mask]])

    async def _acknowledge_cumulatively(self, name: str) -> None:
        ledger, cursor, known = await self._with_cursor(name)
        there = self._there(name, ledger)
        if not there:
            return
        target = self._chance.choice(there[: 1 + len(there) // 2])
        try:
            cursor.acknowledge_cumulative(target)
        except InvalidCursorPositionError:
            return
        known.memory |= self._model.topics[name].before(target) | all_indexes(target)

    async def _flush_cursor(self, name: str) -> None:
        _, cursor, known = await self._with_cursor(name)
        acks, mark_delete = set(known.memory), cursor.mark_delete_position
        await cursor.flush()
        known.written(acks, mark_delete)

    async def _deliver(self, name: str) -> None:
        ledger, cursor, known = await self._with_cursor(name)
        await check_delivery(name, ledger, cursor, known, self._model)

    async def _reset(self, name: str) -> None:
        ledger, cursor, known = await self._with_cursor(name)
        there = self._there(name, ledger)
        if not there:
            return
        target = self._chance.choice(there)
        acks = self._model.topics[name].before(target)
        known.begin_reset(acks, ledger.previous_position(target))
        await cursor.reset(target)
        # Trimming that came first may have taken some of what was asked for.
        there = set(self._there(name, ledger))
        for position in self._model.topics[name].confirmed.keys() - there:
            acks |= all_indexes(position)
        known.memory = set(acks)
        known.latest = cursor.mark_delete_position
        known.written(acks, cursor.mark_delete_position)

    async def _delete_cursor(self, name: str) -> None:
        ledger, cursor, known = await self._with_cursor(name)
        known.is_maybe_missing = True
        await ledger.delete_cursor(cursor.name)
        del self._model.topics[name].cursors[cursor.name]

    # The engine

    async def _flush(self, name: str) -> None:
        await self._bookie.flush()

    async def _collect(self, name: str) -> None:
        await self._bookie.collect_garbage(threshold=self._chance.choice((0.5, 0.9)))

    async def _wait(self, name: str) -> None:
        await asyncio.sleep(self._chance.choice((0.03, 0.03, 1.0, 12.0, 110.0)))

    async def _close(self, name: str) -> None:
        states = [state for each in self._open for state in self._states(each, self._open[each])]
        self._open = {}
        await self._opener.close()
        await self._bookie.close()
        if not self._machine.weather.seen:  # Else what failed was only logged.
            for known, acks, mark_delete in states:
                known.written(acks, mark_delete)
