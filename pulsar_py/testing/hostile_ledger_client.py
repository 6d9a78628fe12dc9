"""`HostileLedgerStore`: one broker's client of `HostileLedgers`, and its readers and writers.

A client can be frozen, like a process that gets no processor time: its requests leave when it
thaws, and answers and time-outs wait until then. A client that is cut off is a process that died:
none of its requests or callbacks happen any more, and its ledgers stay open.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from pulsar_py.common.errors import (
    EntryNotFoundError,
    EntryTooBigError,
    LedgerClosedError,
    LedgerFencedError,
    LedgerNotFoundError,
    StorageError,
    StoreBusyError,
    StoreUnavailableError,
)
from pulsar_py.ledgers.store import (
    LedgerInfo,
    LedgerListener,
    LedgerOptions,
    LedgerReader,
    LedgerStore,
    LedgerWriter,
    LentEntry,
)
from pulsar_py.storage.shared.lent import Lent, Pins

if TYPE_CHECKING:
    from pulsar_py.ledgers.ids import LedgerIds
    from pulsar_py.testing.hostile_ledgers import HostileLedgers, StoredLedger

T = TypeVar("T")

_HALF = 0.5  # the share of unanswered requests that are not done either
_FOR_GOOD = (LedgerFencedError, LedgerNotFoundError, LedgerClosedError)


class HostileLedgerStore(LedgerStore):
    """A LedgerStore behind a faulty network; made by `HostileLedgers.connect`."""

    def __init__(self, service: HostileLedgers, name: str, ledger_ids: LedgerIds) -> None:
        """Only `HostileLedgers.connect` calls this."""
        self.service = service
        self.name = name
        self.limits = service.limits
        self.pins = Pins()
        self.pending_bytes = 0  # what appends hold until they are answered
        self._ledger_ids = ledger_ids
        self._thawed = asyncio.Event()
        self._thawed.set()
        self._held: deque[Callable[[], None]] = deque()  # what happens at the thaw, in order
        self._is_closed = False
        self._is_cut_off = False

    # Freezing and dying

    @property
    def is_frozen(self) -> bool:
        """Whether it is frozen: neither sends nor receives."""
        return not self._thawed.is_set()

    def freeze(self) -> None:
        """Hold requests, answers and time-outs until `thaw`."""
        self._thawed.clear()

    def thaw(self) -> None:
        """End `freeze`: what was held happens now, in its order."""
        self._thawed.set()
        held, self._held = self._held, deque()
        for callback in held:
            asyncio.get_running_loop().call_soon(self.deliver, callback)

    def cut_off(self) -> None:
        """Let the process have died: no pending call ends, and no new one begins."""
        self._is_cut_off = True
        self._held.clear()

    def deliver(self, callback: Callable[[], None]) -> None:
        """Call `callback` in the client's process: now, at the thaw if frozen, never if dead."""
        if self._is_cut_off:
            return
        if self.is_frozen:
            self._held.append(callback)
        else:
            callback()

    def later(self, callback: Callable[[], None], *, not_before: float = 0.0) -> float:
        """Call `callback` after a message's delay; returns the loop's time at which it arrives."""
        loop = asyncio.get_running_loop()
        delay_seconds = self.service.delay_seconds()
        at = max(loop.time() + delay_seconds, not_before)
        if delay_seconds <= 0.0 and at <= loop.time():
            loop.call_soon(callback)
        else:
            loop.call_at(at, callback)
        return at

    async def ask(self, work: Callable[[], T], *, unknown_share: float = 0.0) -> T:
        """Let the service do `work`, and wait for its result.

        A share `unknown_share` of calls ends in an error with an unknown outcome.

        Raises:
            StoreUnavailableError: It was not done, or no answer came in time.
            StorageError: The error that `work` raised; or the outcome is unknown.
        """
        self.check_open()
        timeout_seconds = self.limits.answer_timeout_seconds
        try:
            async with asyncio.timeout(timeout_seconds):
                return await self._ask(work, unknown_share)
        except TimeoutError:
            await self._while_frozen()
            raise StoreUnavailableError(f"no answer within {timeout_seconds} seconds") from None

    async def _ask(self, work: Callable[[], T], unknown_share: float) -> T:
        service = self.service
        await self._travel()
        if service.happens(service.faults.unavailable_share, "unavailable"):
            await self._travel()
            raise StoreUnavailableError("too few bookies answered")
        is_silent = service.happens(service.faults.silent_share, "silent")
        is_unknown = service.happens(unknown_share, "unknown outcome")
        if (is_silent or is_unknown) and service.chance.random() < _HALF:
            work = _nothing  # type: ignore[assignment] # its result is not used
        error: StorageError | None = None
        try:
            result = work()
        except StorageError as failure:
            error = failure
        if is_silent:
            await asyncio.get_running_loop().create_future()
        await self._travel()
        if is_unknown:
            raise StoreUnavailableError("the connection was lost: the outcome is unknown")
        if error is not None:
            raise error
        return result

    async def _travel(self) -> None:
        await self._while_frozen()
        await asyncio.sleep(self.service.delay_seconds())
        await self._while_frozen()

    async def _while_frozen(self) -> None:
        if self._is_cut_off:
            await asyncio.get_running_loop().create_future()
        await self._thawed.wait()

    def check_open(self) -> None:
        """Raise if the store is closed.

        Raises:
            StorageError: It is.
        """
        if self._is_closed:
            raise StorageError("the store is closed")

    # The interface

    async def create(self, listener: LedgerListener, options: LedgerOptions) -> LedgerWriter:
        """A new ledger."""
        self.check_open()
        self.service.check_room()
        ledger_id = await self._ledger_ids.next()
        ledger = await self.ask(
            lambda: self.service.create(ledger_id, options),
            unknown_share=self.service.faults.create_unknown_share,
        )
        return HostileWriter(self, ledger, listener)

    async def open(self, ledger_id: int, *, password: bytes = b"") -> LedgerReader:
        """Open for reading; the end is the one that some bookie knows, which may lag."""

        def work() -> HostileReader:
            ledger = self.service.find(ledger_id, password)
            return HostileReader(self, ledger, self.service.last_heard(ledger))

        return await self.ask(work)

    async def recover(self, ledger_id: int, *, password: bytes = b"") -> LedgerReader:
        """Fence, close, and open."""

        def work() -> HostileReader:
            ledger = self.service.find(ledger_id, password)
            self.service.recover(ledger)
            return HostileReader(self, ledger, ledger.last_known)

        return await self.ask(work, unknown_share=self.service.faults.recover_unknown_share)

    async def delete(self, ledger_id: int) -> None:
        """Delete for good."""
        await self.ask(
            lambda: self.service.delete(ledger_id),
            unknown_share=self.service.faults.delete_unknown_share,
        )

    async def list_ledgers(self) -> AsyncIterator[Sequence[int]]:
        """All ids, a page at a time; it may be cut off."""
        last = 0
        while page := await self.ask(partial(self.service.page, last)):
            if self.service.happens(self.service.faults.listing_cut_share, "listing cut"):
                raise StoreUnavailableError(f"the ledgers after {last} can't be listed")
            yield page
            last = page[-1]

    async def custom_metadata(self, ledger_id: int) -> Mapping[str, bytes]:
        """A ledger's labels."""
        return await self.ask(lambda: self.service.custom_metadata(ledger_id))

    async def info(self, ledger_id: int) -> LedgerInfo:
        """The state, the last entry and the length that the metadata has of a ledger."""
        return await self.ask(lambda: self.service.info(ledger_id))

    async def close(self) -> None:
        """Take no more calls; open ledgers stay open."""
        self._is_closed = True


class HostileReader(LedgerReader):
    """A ledger open for reading; its end is the one that it last heard of."""

    def __init__(self, client: HostileLedgerStore, ledger: StoredLedger, last_heard: int) -> None:
        self.ledger_id = ledger.ledger_id
        self.client = client
        self.service = client.service
        self.ledger = ledger
        self._last_heard = last_heard
        self._is_closed = ledger.end is not None

    @property
    def last_add_confirmed(self) -> int:
        """The last entry heard of."""
        return self._last_heard

    async def read_last_add_confirmed(self) -> int:
        """Ask the service for the end, which may lag."""

        def work() -> tuple[int, bool]:
            self.service.check_not_gone(self.ledger)
            return self.service.last_heard(self.ledger), self.ledger.end is not None

        heard, is_closed = await self.client.ask(work)
        self._last_heard = max(self._last_heard, heard)
        self._is_closed |= is_closed
        return self._last_heard

    @property
    def length_bytes(self) -> int:
        """Bytes up to the last entry heard of."""
        return self.ledger.length_bytes(self.last_add_confirmed)

    @property
    def is_closed(self) -> bool:
        """Whether the ledger was closed when its state was last read."""
        return self._is_closed

    def read_cached(
        self,
        first_entry_id: int,  # noqa: ARG002
        last_entry_id: int,  # noqa: ARG002
        max_bytes: int,  # noqa: ARG002
    ) -> None:
        """Nothing is ever in memory."""
        return

    async def read(
        self, first_entry_id: int, last_entry_id: int, max_bytes: int
    ) -> Sequence[bytes]:
        """Entries up to the last one heard of.

        Raises:
            EntryNotFoundError: `first_entry_id` is beyond that.
        """
        last = min(last_entry_id, self.last_add_confirmed)
        if not 0 <= first_entry_id <= last:
            raise EntryNotFoundError(
                f"ledger {self.ledger_id}: no entry {first_entry_id}, "
                f"the last one heard of is {self.last_add_confirmed}"
            )
        return await self.client.ask(
            lambda: self.service.read(self.ledger, first_entry_id, last, max_bytes)
        )

    async def close(self) -> None:
        """Nothing to release."""


class _Pending:
    """An appended entry without an answer."""

    __slots__ = ("deadline", "entry_id", "lent", "pinned_bytes", "value")

    def __init__(self, entry_id: int, lent: Lent, pinned_bytes: int, deadline: float) -> None:
        self.entry_id = entry_id
        self.lent = lent
        self.pinned_bytes = pinned_bytes
        self.deadline = deadline
        self.value = b"".join(lent.pieces)


class HostileWriter(HostileReader, LedgerWriter):
    """The writer of a ledger; it knows the ledger's end by its own answers."""

    def __init__(
        self, client: HostileLedgerStore, ledger: StoredLedger, listener: LedgerListener
    ) -> None:
        super().__init__(client, ledger, -1)
        self._listener = listener
        self._last_pushed = -1
        self._pending: deque[_Pending] = deque()  # in order
        self._answered: set[int] = set()  # pending entries that were answered
        self._arrival = 0.0  # when the last append sent arrives
        self._is_telling = False
        self._error: StorageError | None = None  # why nothing can be appended
        self._timer: asyncio.TimerHandle | None = None

    @property
    def last_add_pushed(self) -> int:
        """The last entry appended."""
        return self._last_pushed

    def append(self, data: LentEntry) -> int:
        """Send an entry."""
        self.client.check_open()
        if self._error is not None:
            raise self._error
        pieces = data if isinstance(data, tuple) else (data,)
        lent = Lent(pieces, sum(map(len, pieces)))
        self._check_size(lent)
        if self.service.happens(self.service.faults.busy_share, "busy"):
            raise StoreBusyError("the connection takes no more for a moment")
        self.service.check_room()
        deadline = asyncio.get_running_loop().time() + self.client.limits.answer_timeout_seconds
        pending = _Pending(self._last_pushed + 1, lent, self._pin(lent), deadline)
        self._last_pushed += 1
        self._pending.append(pending)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_at(deadline, self._on_deadline)
        self.client.deliver(lambda: self._send(pending))
        return pending.entry_id

    def _check_size(self, lent: Lent) -> None:
        limit = self.client.limits.max_entry_bytes
        if lent.size_bytes > limit:
            raise EntryTooBigError(
                f"ledger {self.ledger_id}: an entry of {lent.size_bytes} bytes, "
                f"the largest is {limit}"
            )

    def _pin(self, lent: Lent) -> int:
        client = self.client
        pinned_bytes = client.pins.add(lent) + lent.size_bytes
        if client.pending_bytes + pinned_bytes > client.limits.max_pinned_bytes:
            client.pins.remove(lent)
            raise StoreBusyError(
                f"{client.pending_bytes} of {client.limits.max_pinned_bytes} bytes wait"
            )
        client.pending_bytes += pinned_bytes
        return pinned_bytes

    def _unpin(self, pending: _Pending) -> None:
        client = self.client
        client.pending_bytes -= client.pins.remove(pending.lent) + pending.lent.size_bytes
        if b"".join(pending.lent.pieces) != pending.value:
            self.service.on_lent_memory_changed(self.ledger, pending.entry_id)

    def _send(self, pending: _Pending) -> None:
        self._arrival = self.client.later(
            lambda: self._on_arrival(pending.entry_id, pending.value), not_before=self._arrival
        )

    def _on_arrival(self, entry_id: int, value: bytes) -> None:
        service = self.service
        is_silent = service.happens(service.faults.silent_share, "silent append")
        if is_silent and service.chance.random() < _HALF:
            return
        try:
            service.store_entry(self.ledger, entry_id, value)
        except StorageError as error:
            self._refuse(error)
            return
        if not is_silent:
            self.client.later(lambda: self._on_stored(entry_id))

    def _on_stored(self, entry_id: int) -> None:
        """Enough bookies have stored the entry: send the answer."""
        try:
            self.service.answer_entry(self.ledger, entry_id)
        except StorageError as error:
            self._refuse(error)
            return
        self.client.later(lambda: self.client.deliver(lambda: self._on_answer(entry_id)))

    def _refuse(self, error: StorageError) -> None:
        if not self.service.happens(self.service.faults.late_fence_share, "late fence"):
            self.client.later(lambda: self.client.deliver(lambda: self._fail(error)))

    def _on_answer(self, entry_id: int) -> None:
        self._answered.add(entry_id)
        if not self._is_telling and self._error is None:
            self._is_telling = True
            asyncio.get_running_loop().call_soon(self.client.deliver, self._tell)

    def _tell(self) -> None:
        """Confirm all answered entries that follow without a gap, once a turn of the loop."""
        self._is_telling = False
        if self._error is not None:
            return
        last = self._last_heard
        while self._pending and self._pending[0].entry_id in self._answered:
            pending = self._pending.popleft()
            last = pending.entry_id
            self._answered.discard(last)
            self._unpin(pending)
        if last > self._last_heard:
            self.service.on_told(self.ledger, last)
            self._last_heard = last
            self._listener.on_confirmed(self.ledger_id, last)

    def _on_deadline(self) -> None:
        self._timer = None
        self.client.deliver(self._look_at_deadline)

    def _look_at_deadline(self) -> None:
        if not self._pending or self._error is not None or self._timer is not None:
            return
        loop = asyncio.get_running_loop()
        deadline = self._pending[0].deadline
        if loop.time() >= deadline:
            seconds = self.client.limits.answer_timeout_seconds
            self._fail(StoreUnavailableError(f"no answer within {seconds} seconds"))
        else:
            self._timer = loop.call_at(deadline, self._on_deadline)

    def _fail(self, error: StorageError) -> None:
        """Fail all pending entries with this error; only the first call counts."""
        if self._error is not None:
            return
        is_for_good = isinstance(error, _FOR_GOOD)
        self._error = error if is_for_good else StorageError(f"ledger failed: {error}")
        self._forget_pending()
        self._listener.on_failed(self.ledger_id, error)

    def _forget_pending(self) -> None:
        pending, self._pending = self._pending, deque()
        for each in pending:
            self._unpin(each)
        self._answered.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def close(self) -> None:
        """End the ledger at its last confirmed entry."""
        if self._is_closed:
            return
        if self._error is not None and not isinstance(self._error, LedgerClosedError):
            raise self._error
        closed = LedgerClosedError(f"ledger {self.ledger_id} is closed")
        if self._pending:
            self._fail(closed)
        self._error = closed
        end = self._last_heard
        await self.client.ask(
            lambda: self.service.close(self.ledger, end),
            unknown_share=self.service.faults.close_unknown_share,
        )
        self._is_closed = True


def _nothing() -> None:
    """The work of a request that is lost on its way."""
