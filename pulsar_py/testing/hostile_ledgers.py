"""`HostileLedgers`: the server side of a ledger store behind a network, with faults from a seed.

One service holds the ledgers; each broker under test has a client of its own:

    service = HostileLedgers(random.Random(seed), LedgerFaults.storm())
    store = service.connect("broker-1")         # a LedgerStore

Everything takes place on the running loop, in its time: meant for virtual time, where a seed
replays exactly. The service keeps the contract of `pulsar_py.ledgers.store` and uses all the
freedom that the contract leaves. A violation of the following is an AssertionError at once, and
again from `check` (errors that the loop's callbacks raise are only logged):

- no entry that was confirmed to a writer is missing from the ledger when it ends;
- an entry has one value: none is written twice with different bytes, and memory that was lent is
  not changed before its answer;
- the end of a ledger, once found or written, never changes;
- no id is given to two ledgers.

Source: LedgerHandle, LedgerRecoveryOp, ReplicationWorker in Apache BookKeeper.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NoReturn

from pulsar_py.common.errors import (
    DiskFullError,
    LedgerClosedError,
    LedgerFencedError,
    LedgerNotFoundError,
    NotEnoughBookiesError,
    StorageError,
)
from pulsar_py.ledgers.store import LedgerInfo, LedgerOptions, StoreLimits
from pulsar_py.testing.ledger_ids import CountedLedgerIds

if TYPE_CHECKING:
    from pulsar_py.ledgers.ids import LedgerIds
    from pulsar_py.testing.hostile_ledger_client import HostileLedgerStore

LIMITS: Final = StoreLimits(
    max_entry_bytes=8 * 1024 * 1024,
    max_pinned_bytes=64 * 1024 * 1024,
    answer_timeout_seconds=10.0,
)
"""The default limits of a client."""

_HALF: Final = 0.5  # the share of refusals that are for a full disk

PAGE_LEDGERS_COUNT: Final = 100
"""Ledgers of one page of a listing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerFaults:
    """Rates of faults, as shares of 1, and durations; no faults by default."""

    delay_seconds: float = 0.0
    """Longest delay of each message; messages of one writer arrive in order."""
    slow_share: float = 0.0
    """Messages that take up to `slow_seconds`."""
    slow_seconds: float = 0.0
    silent_share: float = 0.0
    """Requests and appends that are never answered; half of them are done."""
    unavailable_share: float = 0.0
    """Requests that are refused with StoreUnavailableError, and not done."""
    busy_share: float = 0.0
    """Appends that are refused with StoreBusyError."""
    no_room_share: float = 0.0
    """Appends and creations that are refused with DiskFullError or NotEnoughBookiesError."""
    create_unknown_share: float = 0.0
    """Creations that raise; half of them have made a ledger."""
    recover_unknown_share: float = 0.0
    """Recoveries that raise; half of them have fenced and ended the ledger."""
    close_unknown_share: float = 0.0
    """Closings that raise; half of them are written."""
    delete_unknown_share: float = 0.0
    """Deletions that raise; half of them are done."""
    listing_cut_share: float = 0.0
    """Pages of a listing that end it with an error."""
    late_fence_share: float = 0.0
    """Appends to a fenced ledger whose refusal is lost, so that the writer learns of it later."""
    repair_share: float = 0.0
    """Appends soon after which a repair, not an owner, recovers the ledger."""
    lost_tail_share: float = 0.0
    """Recoveries that don't find all of what was stored and not answered yet."""
    lag_share: float = 0.0
    """Answers about the end of an open ledger that miss up to three entries."""
    short_read_share: float = 0.0
    """Reads that return fewer entries than would fit."""
    deleted_readable_seconds: float = 0.0
    """Longest time for which open handles of a deleted ledger still work."""

    @classmethod
    def delays(cls, seconds: float = 0.05) -> LedgerFaults:
        """Delays of up to `seconds`, and no faults."""
        return cls(
            delay_seconds=seconds,
            slow_share=0.05,
            slow_seconds=20 * seconds,
            lag_share=0.3,
            short_read_share=0.3,
            deleted_readable_seconds=40 * seconds,
        )

    @classmethod
    def storm(cls) -> LedgerFaults:
        """All kinds of faults, now and then."""
        return cls(
            delay_seconds=0.02,
            slow_share=0.05,
            slow_seconds=1.0,
            silent_share=0.002,
            unavailable_share=0.03,
            busy_share=0.01,
            no_room_share=0.01,
            create_unknown_share=0.05,
            recover_unknown_share=0.05,
            close_unknown_share=0.1,
            delete_unknown_share=0.1,
            listing_cut_share=0.1,
            late_fence_share=0.3,
            repair_share=0.005,
            lost_tail_share=0.5,
            lag_share=0.5,
            short_read_share=0.3,
            deleted_readable_seconds=5.0,
        )


@dataclass(slots=True, eq=False)
class StoredLedger:
    """The state of one ledger at the bookies and in the metadata."""

    ledger_id: int
    options: LedgerOptions
    # The stored entries. Those that were not answered may be found by a recovery, or not.
    entries: dict[int, bytes] = field(default_factory=dict)
    # Entries whose answers were sent, and the last one without a gap before it: recoveries find
    # all up to that.
    answered: set[int] = field(default_factory=set)
    answered_to: int = -1
    # The last entry that the writer confirmed to its owner: readers of an open ledger may know it.
    told_to: int = -1
    # The last entry once the ledger is closed, and whether a recovery closed it.
    end: int | None = None
    is_recovered: bool = False
    # The time until which open handles of the deleted ledger work; None while it exists.
    gone_at_seconds: float | None = None

    @property
    def stored_to(self) -> int:
        """The last stored entry without a gap before it."""
        last = self.answered_to
        while last + 1 in self.entries:
            last += 1
        return last

    @property
    def last_known(self) -> int:
        """The last entry that the service reports: the end if closed, else the last confirmed."""
        return self.told_to if self.end is None else self.end

    def length_bytes(self, last_entry_id: int) -> int:
        """Bytes of the entries up to that one."""
        return sum(len(self.entries[each]) for each in range(last_entry_id + 1))


class HostileLedgers:
    """The service, shared by all clients; see the module."""

    def __init__(
        self,
        chance: random.Random,
        faults: LedgerFaults | None = None,
        *,
        limits: StoreLimits = LIMITS,
    ) -> None:
        """A service without ledgers; `faults` may be replaced at any time."""
        self.chance = chance
        self.faults = faults or LedgerFaults()
        self.limits = limits
        self.ledgers: dict[int, StoredLedger] = {}
        self.violations: list[str] = []
        # Counts of faults by name: tests check that a seed had the faults that they are about.
        self.counts: dict[str, int] = {}
        self._ids = CountedLedgerIds()

    def connect(self, name: str, ledger_ids: LedgerIds | None = None) -> HostileLedgerStore:
        """Make a client; `ledger_ids` None takes ids from a counter that clients share."""
        from pulsar_py.testing.hostile_ledger_client import HostileLedgerStore  # noqa: PLC0415 - it needs us

        return HostileLedgerStore(self, name, ledger_ids or self._ids)

    def check(self) -> None:
        """Raise the first violation that was found; see the module.

        Raises:
            AssertionError: There was one.
        """
        assert not self.violations, "\n".join(self.violations)

    def happens(self, share: float, what: str) -> bool:
        """Draw whether a fault happens, and count it; nothing is drawn for a share of 0."""
        if share <= 0.0 or self.chance.random() >= share:
            return False
        self.counts[what] = self.counts.get(what, 0) + 1
        return True

    def check_room(self) -> None:
        """Refuse a write with the share `no_room_share`.

        Raises:
            DiskFullError, NotEnoughBookiesError: There is no room now.
        """
        if self.happens(self.faults.no_room_share, "no room"):
            if self.chance.random() < _HALF:
                raise DiskFullError("every bookie's disk is full")
            raise NotEnoughBookiesError("2 bookies take writes, the ledger needs 3")

    def delay_seconds(self) -> float:
        """The delay of the next message."""
        faults = self.faults
        if self.happens(faults.slow_share, "slow"):
            return self.chance.uniform(0.0, faults.slow_seconds)
        if faults.delay_seconds <= 0.0:
            return 0.0
        return self.chance.uniform(0.0, faults.delay_seconds)

    # Effects of messages on arrival

    def create(self, ledger_id: int, options: LedgerOptions) -> StoredLedger:
        """A new ledger."""
        if ledger_id in self.ledgers:
            self._violated(f"id {ledger_id} was given to two ledgers")
        ledger = self.ledgers[ledger_id] = StoredLedger(ledger_id, options)
        return ledger

    def find(self, ledger_id: int, password: bytes | None = None) -> StoredLedger:
        """A ledger that exists.

        Raises:
            LedgerNotFoundError: There is none.
            StorageError: It has another password.
        """
        ledger = self.ledgers.get(ledger_id)
        if ledger is None or ledger.gone_at_seconds is not None:
            raise LedgerNotFoundError(f"there is no ledger {ledger_id}")
        if password is not None and password != ledger.options.password:
            raise StorageError(f"ledger {ledger_id}: the password does not match")
        return ledger

    def store_entry(self, ledger: StoredLedger, entry_id: int, data: bytes) -> None:
        """Store an entry that the writer sent.

        Raises:
            LedgerNotFoundError, LedgerFencedError, LedgerClosedError: The ledger has ended.
        """
        self.check_not_gone(ledger)
        if ledger.end is not None:
            kind = LedgerFencedError if ledger.is_recovered else LedgerClosedError
            raise kind(f"ledger {ledger.ledger_id} ended at {ledger.end}")
        if ledger.entries.setdefault(entry_id, data) != data:
            self._violated(f"ledger {ledger.ledger_id}: entry {entry_id} was written twice")
        if self.happens(self.faults.repair_share, "repair"):
            loop = asyncio.get_running_loop()
            loop.call_later(self.delay_seconds(), self._repair, ledger)

    def answer_entry(self, ledger: StoredLedger, entry_id: int) -> None:
        """Send the answer to an append: from now on every recovery finds the entry.

        Raises:
            LedgerFencedError, LedgerClosedError: The ledger has ended meanwhile.
        """
        if ledger.end is not None:
            kind = LedgerFencedError if ledger.is_recovered else LedgerClosedError
            raise kind(f"ledger {ledger.ledger_id} ended at {ledger.end}")
        ledger.answered.add(entry_id)
        while ledger.answered_to + 1 in ledger.answered:
            ledger.answered_to += 1
            ledger.answered.discard(ledger.answered_to)

    def on_told(self, ledger: StoredLedger, last_entry_id: int) -> None:
        """A writer is about to confirm entries up to `last_entry_id` to its owner."""
        if last_entry_id > ledger.answered_to:
            self._violated(f"ledger {ledger.ledger_id}: {last_entry_id} is not confirmed")
        if ledger.end is not None and last_entry_id > ledger.end:
            self._violated(
                f"ledger {ledger.ledger_id}: {last_entry_id} is confirmed, it ends at {ledger.end}"
            )
        ledger.told_to = max(ledger.told_to, last_entry_id)

    def recover(self, ledger: StoredLedger) -> None:
        """Fence the writer and close the ledger, unless it is closed already."""
        if ledger.end is not None:
            return
        end = ledger.stored_to
        if self.happens(self.faults.lost_tail_share, "lost tail"):
            end = self.chance.randint(ledger.answered_to, end)
        ledger.is_recovered = True
        self._end(ledger, end)

    def close(self, ledger: StoredLedger, end: int) -> None:
        """The writer closes its ledger at `end`; it may have done so before.

        Raises:
            LedgerNotFoundError: It was deleted.
            LedgerFencedError: A recovery closed it.
        """
        self.find(ledger.ledger_id)
        if ledger.is_recovered:
            raise LedgerFencedError(f"ledger {ledger.ledger_id} was recovered, to {ledger.end}")
        self._end(ledger, end)

    def delete(self, ledger_id: int) -> None:
        """Delete a ledger; fine if there is none."""
        ledger = self.ledgers.get(ledger_id)
        if ledger is not None and ledger.gone_at_seconds is None:
            grace = self.faults.deleted_readable_seconds
            rest_seconds = self.chance.uniform(0.0, grace) if grace > 0.0 else 0.0
            ledger.gone_at_seconds = asyncio.get_running_loop().time() + rest_seconds

    def check_not_gone(self, ledger: StoredLedger) -> None:
        """Check that the handles of a ledger still work.

        Raises:
            LedgerNotFoundError: It was deleted, and its handles ended.
        """
        gone_at = ledger.gone_at_seconds
        if gone_at is not None and asyncio.get_running_loop().time() >= gone_at:
            raise LedgerNotFoundError(f"ledger {ledger.ledger_id} was deleted")

    def last_heard(self, ledger: StoredLedger) -> int:
        """The last entry of a ledger as some bookie knows it, which may lag."""
        last = ledger.last_known
        if ledger.end is None and self.happens(self.faults.lag_share, "lag"):
            last = max(last - self.chance.randint(1, 3), -1)
        return last

    def read(self, ledger: StoredLedger, first: int, last: int, max_bytes: int) -> Sequence[bytes]:
        """Entries from `first`: at least one, then while `max_bytes` allow.

        Raises:
            LedgerNotFoundError: The ledger is gone.
        """
        self.check_not_gone(ledger)
        chosen = [ledger.entries[first]]
        if self.happens(self.faults.short_read_share, "short read"):
            last = self.chance.randint(first, last)
        room_bytes = max_bytes - len(chosen[0])
        for entry_id in range(first + 1, last + 1):
            room_bytes -= len(ledger.entries[entry_id])
            if room_bytes < 0:
                break
            chosen.append(ledger.entries[entry_id])
        return chosen

    def page(self, after: int) -> Sequence[int]:
        """The next ids of existing ledgers."""
        ids = sorted(
            each.ledger_id
            for each in self.ledgers.values()
            if each.gone_at_seconds is None and each.ledger_id > after
        )
        return ids[:PAGE_LEDGERS_COUNT]

    def custom_metadata(self, ledger_id: int) -> Mapping[str, bytes]:
        """A ledger's labels."""
        return self.find(ledger_id).options.custom_metadata

    def info(self, ledger_id: int) -> LedgerInfo:
        """What the metadata says of a ledger."""
        ledger = self.find(ledger_id)
        return LedgerInfo(
            ledger_id=ledger_id,
            is_closed=ledger.end is not None,
            last_entry_id=ledger.end,
            length_bytes=None if ledger.end is None else ledger.length_bytes(ledger.end),
            custom_metadata=ledger.options.custom_metadata,
        )

    def on_lent_memory_changed(self, ledger: StoredLedger, entry_id: int) -> None:
        """Record a violation: memory that was lent to a client changed before the answer."""
        self._violated(f"ledger {ledger.ledger_id}: lent memory of entry {entry_id} has changed")

    def _repair(self, ledger: StoredLedger) -> None:
        if ledger.gone_at_seconds is None:
            self.recover(ledger)

    def _end(self, ledger: StoredLedger, end: int) -> None:
        if ledger.end is not None:
            if ledger.end != end:
                self._violated(f"ledger {ledger.ledger_id} ended at {ledger.end}, now at {end}")
            return
        if end < ledger.told_to:
            self._violated(
                f"ledger {ledger.ledger_id}: {ledger.told_to} was confirmed, it ends at {end}"
            )
        ledger.end = end
        for entry_id in [each for each in ledger.entries if each > end]:
            del ledger.entries[entry_id]

    def _violated(self, text: str) -> NoReturn:
        self.violations.append(text)
        raise AssertionError(text)
