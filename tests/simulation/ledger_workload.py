"""Random calls of one owner to its topics; what depends on chance depends on the seed."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from itertools import count

from pulsar_py.common.errors import (
    CorruptDataError,
    EntryNotFoundError,
    InvalidCursorPositionError,
    LedgerFencedError,
    LedgerNotFoundError,
    ManagedLedgerError,
    ManagedLedgerFencedError,
    MetadataError,
    StorageError,
)
from pulsar_py.common.position import Position
from pulsar_py.managed_ledger.cursors.managed_cursor import ManagedCursor
from pulsar_py.managed_ledger.managed_ledger import InitialPosition, ManagedLedger
from tests.simulation.checks import acknowledged
from tests.simulation.ledger_judge import (
    BACK,
    BATCH,
    CAUSE,
    DELETED,
    ENDS,
    INVENTED,
    KEPT,
    ONCE,
    ORDER,
    READ,
    WORKS,
    Acks,
    CursorPromise,
    Incarnation,
    LedgerInvariantError,
    all_indexes,
)
from tests.simulation.ledger_world import TOPICS, Listener, Process

CURSORS = ("one", "two")
READS_COUNT = 1000  # of one look at everything: more than there are entries
DEATHS_AFTER_A_FLUSH = 0.3  # the share of flushes that the owner does not outlive by a write
STUCK_AFTER_SECONDS = 300.0  # of virtual time
MASKS = (0b110, 0b101, 0b011, 0b001, 0b100)
FAILURES = (StorageError, MetadataError, ManagedLedgerError)
LOST = (CorruptDataError, LedgerNotFoundError, EntryNotFoundError)

Step = Callable[[str], Awaitable[None]]


def _nothing() -> None:
    """Nobody waits for it any more."""


class LedgerWork:
    """The calls of one process."""

    def __init__(self, process: Process, trace: hashlib._Hash) -> None:
        self._process = process
        self._world = process.world
        self._judge = process.world.judge
        self._chance = process.world.chance
        self._trace = trace
        self._readers = count()
        self._delivering: set[ManagedCursor] = set()
        self._making: set[asyncio.Task[None]] = set()  # others' work on what is deleted here
        self._steps: dict[Step, int] = {
            self.append: 24,
            self.append_and_wait: 4,
            self.read: 6,
            self.acknowledge: 12,
            self.acknowledge_cumulatively: 7,
            self.flush_cursor: 8,
            self.acknowledge_while_flushing: 4,
            self.deliver: 4,
            self.delete_cursor: 2,
            self.roll: 3,
            self.trim: 5,
            self.close_topic: 4,
            self.give_up: 4,
            self.delete_topic: 2,
            self.delete_what_moved: 2,
            self.check_all: 1,
            self.collect: 1,
            self.wait: 5,
        }
        if self._world.has_receipts:
            self._steps[self.acknowledge_with_receipts] = 12

    async def run(self, steps_count: int) -> None:
        """So many steps."""
        for _ in range(steps_count):
            if self._process.is_dead:
                return
            step = self._chance.choices(list(self._steps), list(self._steps.values()))[0]
            await self.do(step, self._chance.choice(TOPICS))
            await asyncio.sleep(self._chance.choice((0.0, 0.01, 0.3, 1.0)))

    async def do(self, step: Step, name: str) -> None:
        """One step; errors need a cause, and the weather is one."""
        self._note(f"{self._process.name} {step.__name__} {name}")
        try:
            async with asyncio.timeout(STUCK_AFTER_SECONDS):
                await step(name)
        except TimeoutError as error:
            if self._process.is_dead:
                return  # nothing of it ends any more
            raise LedgerInvariantError(f"{ENDS}: {step.__name__} {name}") from error
        except FAILURES as error:
            self._note(repr(error))
            self._judge.require(
                CAUSE, holds=not isinstance(error, CorruptDataError), detail=repr(error)
            )
        self._judge.held[ENDS] += 1
        self._judge.raise_violations()

    def _note(self, text: str) -> None:
        self._trace.update(f"{asyncio.get_running_loop().time():.6f} {text}\n".encode())

    # Topics

    async def opened(self, name: str) -> ManagedLedger | None:
        """The topic, if this process has it or can take it."""
        process, ledger = self._process, self._process.open.get(name)
        if ledger is not None and not ledger.is_closed and not ledger.is_fenced:
            is_ours = await self.has(name)
            if is_ours or process.ownership.is_stale or self._chance.random() < 0.3:
                return ledger
        if ledger is not None:
            await self._close(name)
        if not await process.ownership.acquire(name):
            return None
        taken = await process.ownership.session_of(name)
        # What is certain before it is opened has to be found.
        incarnation = self._judge.topics.get(name)
        sure = {} if incarnation is None else dict(incarnation.cursors)
        sure = {each: promise for each, promise in sure.items() if promise.is_sure}
        self._judge.on_opening(process, name)
        try:
            ledger = await process.opener.open(name, self._world.config)
        except BaseException:
            self._judge.on_not_opened(process, name)
            raise
        self._judge.on_opened(process, ledger)
        if ledger.listener is None:
            ledger.listener = Listener(process, ledger)
        process.open[name] = ledger
        # It may be one that the opener had all the time, opened before it was given up.
        process.taken[name] = process.opened_under.setdefault(ledger, taken)
        if self._judge.of(ledger) is incarnation:
            self._check_cursors(ledger, sure)
        for cursor_name in CURSORS[: self._chance.randint(0, 2)]:
            await self.open_cursor(ledger, cursor_name)
        return ledger

    async def has(self, name: str) -> bool:
        """Whether it is known to be ours, and was ever since it was opened."""
        ownership = self._process.ownership
        session_id = await ownership.session_of(name)
        return session_id == self._process.taken.get(name) and await ownership.has(name)

    def _check_cursors(self, ledger: ManagedLedger, sure: dict[str, CursorPromise]) -> None:
        """After opening: all cursors are there, and in a state between durable and asked for."""
        incarnation = self._judge.of(ledger)
        if incarnation is None or not self._judge.is_current(ledger):
            return
        for cursor_name, promise in list(incarnation.cursors.items()):
            cursor = ledger.cursors.get(cursor_name)
            if cursor is not None:
                self._check_cursor(ledger, incarnation, promise, cursor)
            elif promise is sure.get(cursor_name):
                may_be_gone = promise.is_going or not promise.is_sure
                detail = (ledger.name, cursor_name, "is not there")
                self._judge.require(DELETED, holds=may_be_gone, detail=detail)
                del incarnation.cursors[cursor_name]

    def _check_cursor(
        self,
        ledger: ManagedLedger,
        incarnation: Incarnation,
        promise: CursorPromise,
        cursor: ManagedCursor,
    ) -> None:
        if not self._judge.is_current_cursor(ledger, cursor):
            return
        cursor.state.check()
        there = self._there(ledger)  # not what was trimmed, even if a list names it again
        found = acknowledged(cursor, set(there))
        if promise.deletions_count:
            return
        if not promise.is_sure or promise.is_going:
            promise.adopt(found, cursor.mark_delete_position)
            return
        detail = (ledger.name, cursor.name)
        due = {each for each in promise.durable if each[0] in there}
        self._judge.require(BACK, holds=due <= found, detail=(*detail, sorted(due - found)[:3]))
        for position in there:
            acks = all_indexes(position) & found
            is_asked = promise.allows(position, acks)
            self._judge.require(INVENTED, holds=is_asked, detail=(*detail, position))

    def _there(self, ledger: ManagedLedger) -> list[Position]:
        """What is confirmed, as far as its owner has it."""
        incarnation = self._judge.of(ledger)
        confirmed = () if incarnation is None else incarnation.confirmed
        return sorted(each for each in confirmed if ledger.contains(each))

    async def _close(self, name: str) -> None:
        ledger = self._process.open.pop(name, None)
        if ledger is not None:
            await ledger.close()

    async def append(self, name: str) -> None:
        """A burst."""
        if (ledger := await self.opened(name)) is None:
            return
        for _ in range(self._chance.randint(1, 6)):
            data = self._new_entry(name)
            ledger.append(data, data)

    def _new_entry(self, name: str) -> bytes:
        self._world.numbers += 1
        text = f"{name} {self._world.numbers} {self._process.name} "
        data = text.encode() * self._chance.randint(1, 6)
        self._judge.sent[data] = name
        return data

    async def append_and_wait(self, name: str) -> None:
        """One entry."""
        if (ledger := await self.opened(name)) is None:
            return
        data = self._new_entry(name)
        position = await ledger.append_and_wait(data)
        self._judge.on_appended(name, position, data)

    async def read(self, name: str) -> None:
        """Everything, with a cursor that is in memory only."""
        if (ledger := await self.opened(name)) is not None:
            await self.read_all(ledger)

    async def read_all(self, ledger: ManagedLedger) -> None:
        """Read it all and compare."""
        judge = self._judge
        incarnation = judge.of(ledger)
        was_current = judge.is_current(ledger)
        expected = dict(incarnation.confirmed) if was_current and incarnation is not None else {}
        reader = ledger.new_non_durable_cursor(
            f"reader {next(self._readers)}", InitialPosition.EARLIEST
        )
        try:
            found = await self._read_to_the_end(reader)
        except LOST as error:
            # Whoever is current has what the list names; others may read what is trimmed.
            judge.require(READ, holds=not judge.is_current(ledger), detail=repr(error))
            return
        finally:
            await reader.close()
        self._compare(ledger, found)
        if was_current and judge.is_current(ledger) and incarnation is not None:
            for position, data in expected.items():
                if position in incarnation.confirmed and ledger.contains(position):
                    is_there = found.get(position) == data
                    judge.require(READ, holds=is_there, detail=(ledger.name, position, data[:30]))
                is_known = position not in incarnation.confirmed or ledger.contains(position)
                judge.require(KEPT, holds=is_known, detail=(ledger.name, position))
            for position, data in found.items():
                if position.ledger_id in incarnation.ledger_ids:
                    incarnation.confirmed.setdefault(position, data)

    async def _read_to_the_end(self, cursor: ManagedCursor) -> dict[Position, bytes]:
        """All that follows; trimming moves a cursor, and what was read meanwhile is dropped."""
        found: dict[Position, bytes] = {}
        for _ in range(READS_COUNT):
            entries = await cursor.read(self._chance.choice((3, 50)), 1 << 20)
            found |= {entry.position: bytes(entry.data) for entry in entries}
            if not entries and not cursor.has_more_entries():
                break
        return found

    def _compare(self, ledger: ManagedLedger, found: dict[Position, bytes]) -> None:
        judge, last = self._judge, {}
        for position, data in found.items():
            judge.require(READ, holds=judge.sent.get(data) == ledger.name, detail=(position, data))
            known = judge.where.get(data, position), judge.seen.setdefault(data, position)
            detail = (ledger.name, position, known)
            judge.require(ONCE, holds=known == (position, position), detail=detail)
            _, number, process = data.split()[:3]
            in_order = last.get(process, -1) < int(number)
            judge.require(ORDER, holds=in_order, detail=(ledger.name, position, data[:30]))
            last[process] = int(number)

    async def roll(self, name: str) -> None:
        if (ledger := await self.opened(name)) is not None:
            await ledger.roll_ledger()

    async def trim(self, name: str) -> None:
        if (ledger := await self.opened(name)) is not None:
            await ledger.trim()

    async def close_topic(self, name: str) -> None:
        await self._close(name)

    async def give_up(self, name: str) -> None:
        """As if the topic moved."""
        try:
            await self._close(name)
        finally:
            await self._process.ownership.release(name)

    async def delete_topic(self, name: str) -> None:
        if (ledger := await self.opened(name)) is None:
            return
        incarnation = self._judge.of(ledger)
        if incarnation is not None:
            incarnation.may_die = True
        self._process.open.pop(name, None)
        await ledger.delete()
        is_gone = self._judge.topics.get(name) is not incarnation
        self._judge.require(DELETED, holds=is_gone, detail=(name, "was deleted"))

    async def delete_what_moved(self, name: str) -> None:
        """Delete a topic that was given up, and stand still as soon as that has begun."""
        if (ledger := await self.opened(name)) is None:
            return
        await self._process.ownership.release(name)
        if (incarnation := self._judge.of(ledger)) is None:
            return
        incarnation.may_die = True
        incarnation.on_marked = partial(self._stand_still, name)
        try:
            await ledger.delete()
        finally:
            incarnation.on_marked = _nothing
        if self._process.open.get(name) is ledger:
            del self._process.open[name]

    def _stand_still(self, name: str) -> None:
        """Hear nothing for less than a session, while another process makes the topic again."""
        loop, process, world = asyncio.get_running_loop(), self._process, self._world
        if process.is_dead:
            return
        process.freeze()
        loop.call_later(self._chance.choice((0.5, 1.0, 3.0)), process.thaw)
        if others := [each for each in world.processes if each is not process]:
            next_owner = self._chance.choice(others)
            task = next_owner.spawn(LedgerWork(next_owner, self._trace).make_again(name))
            self._making.add(task)
            task.add_done_callback(self._making.discard)

    async def make_again(self, name: str) -> None:
        """Use a topic that somebody else deletes; what breaks is told by the judge."""
        try:
            for step in (self.append, self.acknowledge, self.flush_cursor):
                await self.do(step, name)
        except LedgerInvariantError as error:
            self._judge.violations.append(str(error))

    async def check_all(self, name: str) -> None:
        await self._process.opener.check_ledgers()

    async def collect(self, name: str) -> None:
        await self._process.collector.collect()

    async def wait(self, name: str) -> None:
        await asyncio.sleep(self._chance.choice((0.1, 1.0, 6.0)))

    # Cursors

    async def open_cursor(self, ledger: ManagedLedger, cursor_name: str) -> None:
        """Open one, or make it."""
        judge, incarnation = self._judge, self._judge.of(ledger)
        has = await self.has(ledger.name)
        if cursor_name in ledger.cursors or incarnation is None or not has:
            return  # nobody subscribes to what is not known to be ours
        promise = incarnation.cursors[cursor_name] = CursorPromise()
        initial = self._chance.choice((InitialPosition.EARLIEST, InitialPosition.LATEST))
        cursor = await ledger.open_cursor(cursor_name, initial)
        has = await self.has(ledger.name)
        if has and judge.is_current_cursor(ledger, cursor):
            found = acknowledged(cursor, set(self._there(ledger)))
            promise.adopt(found, cursor.mark_delete_position)

    async def _with_cursor(self, name: str):
        """A topic, one of its cursors, and what is promised of it."""
        ledger = await self.opened(name)
        incarnation = None if ledger is None else self._judge.of(ledger)
        if ledger is None or incarnation is None:
            return None
        if not ledger.cursors:
            await self.open_cursor(ledger, CURSORS[0])
        usable = sorted(
            each
            for each in incarnation.cursors
            if each in ledger.cursors and not ledger.cursors[each].is_closed
        )
        if not usable:
            return None
        cursor_name = self._chance.choice(usable)
        return ledger, ledger.cursors[cursor_name], incarnation.cursors[cursor_name]

    async def acknowledge(self, name: str) -> None:
        if (found := await self._with_cursor(name)) is None:
            return
        self._acknowledge(*found)

    def _acknowledge(
        self, ledger: ManagedLedger, cursor: ManagedCursor, promise: CursorPromise
    ) -> None:
        there = self._there(ledger)
        for position in self._chance.sample(there, min(len(there), 4)):
            mask = self._chance.choice((None, None, *MASKS))
            promise.asked |= {
                (position, index) for index in range(BATCH) if mask is None or not mask >> index & 1
            }
            cursor.acknowledge([position], [None if mask is None else [mask]])

    async def acknowledge_with_receipts(self, name: str) -> None:
        """One group after the other, each with a receipt; often the owner dies right afterwards."""
        for _ in range(self._chance.randint(2, 8)):
            await self.append_and_wait(name)
            if (found := await self._with_cursor(name)) is None:
                return
            ledger, cursor, promise = found
            self._acknowledge(ledger, cursor, promise)
            acks = acknowledged(cursor, set(self._there(ledger)))
            cursor.when_durable(partial(self._on_durable, promise, acks))
            await asyncio.sleep(self._chance.choice((0.0, 0.01, 0.1)))
        if not self._process.is_dead and self._chance.random() < DEATHS_AFTER_A_FLUSH:
            self._world.crash(self._process)

    @staticmethod
    def _on_durable(
        promise: CursorPromise, acks: Acks, _numbers: Sequence[int], error: Exception | None
    ) -> None:
        if error is None and promise.is_sure and not promise.is_going:
            promise.durable |= acks

    async def acknowledge_cumulatively(self, name: str) -> None:
        if (found := await self._with_cursor(name)) is None:
            return
        ledger, cursor, promise = found
        if there := self._there(ledger):
            self._acknowledge_to(self._chance.choice(there), cursor, promise)

    @staticmethod
    def _acknowledge_to(target: Position, cursor: ManagedCursor, promise: CursorPromise) -> None:
        promise.asked_to = max(promise.asked_to, target)
        try:
            cursor.acknowledge_cumulative(target)
        except InvalidCursorPositionError:
            return

    async def flush_cursor(self, name: str) -> None:
        if (found := await self._with_cursor(name)) is None:
            return
        ledger, cursor, promise = found
        acks = acknowledged(cursor, set(self._there(ledger)))
        await cursor.flush()
        if promise.is_sure and not promise.is_going:
            promise.durable |= acks

    async def acknowledge_while_flushing(self, name: str) -> None:
        """The state grows while it is written; often the owner dies right afterwards."""
        if (found := await self._with_cursor(name)) is None:
            return
        ledger, cursor, promise = found
        if self._chance.random() < 0.5 and (there := self._there(ledger)):
            self._acknowledge_to(there[-1], cursor, promise)  # a small state
            for _ in range(self._chance.randint(2, 6)):
                await self.append_and_wait(name)
        acks = acknowledged(cursor, set(self._there(ledger)))
        flushing = asyncio.get_running_loop().create_task(cursor.flush())
        try:
            await asyncio.sleep(self._chance.choice((0.0, 0.01)))
            self._acknowledge(ledger, cursor, promise)
        finally:
            await flushing
        if promise.is_sure and not promise.is_going:
            promise.durable |= acks
        if not self._process.is_dead and self._chance.random() < DEATHS_AFTER_A_FLUSH:
            self._world.crash(self._process)

    async def deliver(self, name: str) -> None:
        """What waits comes, and nothing that is acknowledged."""
        if (found := await self._with_cursor(name)) is None:
            return
        ledger, cursor, _ = found
        if cursor in self._delivering:
            return  # one read at a time
        self._delivering.add(cursor)
        try:
            await self._deliver(ledger, cursor)
        finally:
            self._delivering.discard(cursor)

    async def _deliver(self, ledger: ManagedLedger, cursor: ManagedCursor) -> None:
        name = ledger.name
        judge, incarnation = self._judge, self._judge.of(ledger)
        was_current = judge.is_current(ledger)
        expected = set(self._there(ledger)) if was_current else set()
        cursor.rewind()
        try:
            got = await self._read_to_the_end(cursor)
        except LOST as error:
            judge.require(READ, holds=not judge.is_current(ledger), detail=repr(error))
            return
        self._compare(ledger, got)
        if not was_current or not judge.is_current(ledger) or incarnation is None:
            return
        for position in expected & incarnation.confirmed.keys():
            is_settled = position in got or cursor.is_acknowledged(position)
            is_settled |= cursor.read_position <= position  # another driver has rewound it
            judge.require(READ, holds=is_settled, detail=(name, cursor.name, position))

    async def delete_cursor(self, name: str) -> None:
        if (found := await self._with_cursor(name)) is None:
            return
        ledger, cursor, promise = found
        incarnation = self._judge.of(ledger)
        promise.is_going = True
        promise.deletions_count += 1
        try:
            await ledger.delete_cursor(cursor.name)
        finally:
            promise.deletions_count -= 1
        if incarnation is not None and incarnation.cursors.get(cursor.name) is promise:
            del incarnation.cursors[cursor.name]

    # Calm weather

    async def must(self, step: Step, name: str) -> None:
        """One step that has to succeed."""
        self._note(f"{self._process.name} must {step.__name__} {name}")
        try:
            async with asyncio.timeout(STUCK_AFTER_SECONDS):
                try:
                    await step(name)
                except ManagedLedgerFencedError:
                    if name not in self._judge.crossed:
                        raise
                    await step(name)
        except TimeoutError as error:
            raise LedgerInvariantError(f"{ENDS}: {step.__name__} {name} in calm weather") from error
        except FAILURES as error:
            raise LedgerInvariantError(f"{WORKS}: {step.__name__} {name}: {error!r}") from error
        self._judge.held[WORKS] += 1
        self._judge.raise_violations()

    async def look_at(self, name: str) -> None:
        """Everything is there, and all of it works."""
        ledger = await self.opened(name)
        assert ledger is not None, f"{name} can't be taken"
        for cursor_name in CURSORS:
            await self.open_cursor(ledger, cursor_name)
        await self.read_all(ledger)
        await self.append_and_wait(name)
        is_current = self._judge.is_current(ledger)
        self._judge.require(WORKS, holds=is_current, detail=(name, "is not current"))
        incarnation = self._judge.of(ledger)
        assert incarnation is not None
        missing = [each for each in incarnation.confirmed if not ledger.contains(each)]
        self._judge.require(KEPT, holds=not missing, detail=(name, missing))
        for step in (self.acknowledge, self.deliver, self.flush_cursor, self.trim, self.read):
            for _ in CURSORS:
                with suppress(LedgerFencedError):  # a fence of a cursor's ledger is learnt late
                    await step(name)
                    break
            else:
                await step(name)
