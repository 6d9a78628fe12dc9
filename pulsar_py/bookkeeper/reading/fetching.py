"""`EntryFetch`: reads a run of entries, each from the first of its bookies that has it (edge).

All entries of the run are asked for at once, each at one bookie; where one can't give it the next
of the write set is asked. Those that follow one another and are asked of the same bookie go in one
request, if each bookie has all entries and this one takes such requests (`BatchReads`). The order
is that of `Placement.read_order`; with sticky reads one bookie comes first for all entries, as long
as it gives them. Where speculative reads are switched on, the next bookie is asked too when an
answer takes long, and the first good one counts. A replica that fails its digest is as good as
none.

Source: PendingReadOp, BatchedReadOp, SpeculativeRequestExecutor, getStickyReadBookieIndex in Apache
BookKeeper.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from pulsar_py.bookkeeper.bookies.requests import BookieRequest
from pulsar_py.bookkeeper.cluster.cluster import LedgerCluster, LedgerInUse
from pulsar_py.bookkeeper.protocol import frames
from pulsar_py.bookkeeper.protocol.entry_format import BookieEntry, unpacked
from pulsar_py.bookkeeper.protocol.frames import (
    BookieAnswer,
    BookieCode,
    BookieOperation,
    RequestFlags,
)
from pulsar_py.bookkeeper.reading.asking import read_entry_request
from pulsar_py.common.errors import (
    CorruptDataError,
    RemoteProtocolError,
    StorageError,
    StoreUnavailableError,
)

logger = logging.getLogger(__name__)


class _Wanted:
    """One entry of the run."""

    __slots__ = ("asked_count", "bookies", "has_unknown", "reasons")

    def __init__(self, bookies: list[str]) -> None:
        self.bookies = bookies  # to be asked, the next one last
        self.asked_count = 0  # of those that have not answered
        self.reasons: list[str] = []  # why those asked did not give it
        self.has_unknown = False  # one of them may have it


class EntryFetch:
    """Reads one run; used once."""

    def __init__(
        self, cluster: LedgerCluster, ledger: LedgerInUse, first_entry_id: int, last_entry_id: int
    ) -> None:
        self._cluster = cluster
        self._ledger = ledger
        self._first = first_entry_id
        self._last = last_entry_id
        self._orders: dict[tuple[str, ...], list[str]] = {}  # by write set: the next one last
        self._wanted: dict[int, _Wanted] = {}  # not decided so far
        self._found: dict[int, BookieEntry] = {}
        self._errors: dict[int, StorageError] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def run(self) -> list[BookieEntry]:
        """The entries up to the first that can't be read, at least one.

        Raises:
            StoreUnavailableError: The first can't be read now.
            CorruptDataError: No bookie has the first whole.
        """
        metadata = self._ledger.recorded.metadata
        for entry_id in range(self._first, self._last + 1):
            ensemble = metadata.ensemble_at(entry_id)
            write_set = tuple(ensemble[index] for index in metadata.write_set(entry_id))
            self._wanted[entry_id] = _Wanted(self._order(write_set).copy())
        entry_id = self._first
        while entry_id <= self._last:
            entry_id = self._ask_from(entry_id)
        self._set_timer()
        try:
            await self._done
        finally:
            if self._timer is not None:
                self._timer.cancel()
        run: list[BookieEntry] = []
        while (entry := self._found.get(self._first + len(run))) is not None:
            run.append(entry)
        if not run:
            raise self._errors[self._first]
        return run

    def _order(self, write_set: tuple[str, ...]) -> list[str]:
        """The places of the bookies to ask, in reverse order: the next one is last."""
        order = self._orders.get(write_set)
        if order is None:
            bookies, ensembles = self._cluster.bookies, self._cluster.ensembles
            order = ensembles.placement.read_order(
                write_set,
                is_failing=bookies.is_failing,
                is_avoided=ensembles.is_avoided,
                read_only=bookies.registry.known_read_only,
            )
            sticky = self._sticky(order)
            if sticky in order:
                order.remove(sticky)
                order.insert(0, sticky)
            order.reverse()
            self._orders[write_set] = order
        return order

    def _sticky(self, order: list[str]) -> str:
        """The bookie that sticky reads ask first, empty for none."""
        metadata = self._ledger.recorded.metadata
        if (
            not self._cluster.settings.has_sticky_reads
            or metadata.write_quorum_size < metadata.ensemble_size
        ):
            return ""
        sticky = self._ledger.sticky_bookie
        if sticky not in order or self._cluster.bookies.is_failing(sticky):
            sticky = self._ledger.sticky_bookie = order[0]
        return sticky

    def _ask_from(self, entry_id: int) -> int:
        """Ask for an entry and those that go with it; returns the one behind them."""
        bookie_id = self._wanted[entry_id].bookies[-1]
        end = entry_id + 1
        if self._takes_batches(bookie_id):
            while end <= self._last and self._wanted[end].bookies[-1] == bookie_id:
                end += 1
        if end == entry_id + 1:
            self._ask_next(entry_id)
            return end
        for each in range(entry_id, end):
            wanted = self._wanted[each]
            wanted.bookies.pop()
            wanted.asked_count += 1
        self._ask_batch(bookie_id, entry_id, end)
        return end

    def _takes_batches(self, bookie_id: str) -> bool:
        """Whether a bookie has all entries of the run, and may be asked for many with a request."""
        metadata = self._ledger.recorded.metadata
        return (
            self._last > self._first
            and self._cluster.settings.batch_read_bytes > 0
            and metadata.write_quorum_size == metadata.ensemble_size
            and self._cluster.bookies.batch_reads.takes(bookie_id)
        )

    def _ask_batch(self, bookie_id: str, first: int, end: int) -> None:
        frame = frames.batch_read_request(
            self._ledger.ledger_id,
            first,
            max_count=end - first,
            max_bytes=self._cluster.settings.batch_read_bytes,
        )
        self._cluster.bookies.link(bookie_id).send(
            BookieRequest(
                BookieOperation.BATCH_READ,
                self._ledger.ledger_id,
                first,
                (frame,),
                _AskedBatch(self, bookie_id, end),
            )
        )

    def on_batch(self, bookie_id: str, end: int, answer: BookieAnswer) -> None:
        """Take a bookie's answer for the entries from one on, up to before `end`."""
        if self._done.done():
            return
        first, found = answer.entry_id, self._entries_of(answer)[: end - answer.entry_id]
        for entry_id, data in enumerate(found, first):
            self._on_answer(bookie_id, entry_id, BookieCode.EOK, data)
        rest = first + len(found)
        if found and rest < end:  # it ended at the size asked for, or before one that is missing
            self._ask_batch(bookie_id, rest, end)
        elif not found and answer.code in frames.NOT_HERE:  # said of the first one alone
            for entry_id in range(first + 1, end):
                self._ask(bookie_id, entry_id)
            self._on_answer(bookie_id, first, answer.code, b"")
        elif not found:
            code = answer.code or BookieCode.EBADREQ  # an answer without an entry is none
            for entry_id in range(first, end):
                self._on_answer(bookie_id, entry_id, code, b"")

    def _entries_of(self, answer: BookieAnswer) -> list[bytes]:
        """The entries in a batch, none where it says why there are none, or can't be read."""
        if answer.code != BookieCode.EOK:
            return []
        try:
            return frames.batch_entries(answer.data)
        except RemoteProtocolError as error:
            logger.warning("batch of entries can't be read", extra={"error": str(error)})
            return []

    def _ask(self, bookie_id: str, entry_id: int) -> None:
        request = read_entry_request(self._ledger, entry_id, RequestFlags.NONE)
        sink = _Asked(self, bookie_id)
        self._cluster.bookies.link(bookie_id).send(BookieRequest(*request, sink))

    def _ask_next(self, entry_id: int) -> None:
        """Ask the next bookie for an entry, or note that all were asked."""
        wanted = self._wanted[entry_id]
        if wanted.bookies:
            wanted.asked_count += 1
            self._ask(wanted.bookies.pop(), entry_id)
        elif not wanted.asked_count:
            del self._wanted[entry_id]
            text = f"ledger {self._ledger.ledger_id}: entry {entry_id}: {'; '.join(wanted.reasons)}"
            self._errors[entry_id] = (
                StoreUnavailableError(text) if wanted.has_unknown else CorruptDataError(text)
            )

    def _set_timer(self) -> None:
        seconds = self._cluster.settings.speculative_read_timeout_seconds
        if seconds > 0:
            self._timer = self._cluster.clock.call_later(seconds, self._ask_more)

    def _ask_more(self) -> None:
        """Ask the next bookie of each missing entry, because answers take long."""
        self._timer = None
        for entry_id, wanted in list(self._wanted.items()):
            if wanted.bookies:
                self._cluster.counters.speculative_reads_count += 1
                self._ask_next(entry_id)
        if any(wanted.bookies for wanted in self._wanted.values()):
            self._set_timer()

    def on_answer(self, bookie_id: str, answer: BookieAnswer) -> None:
        """Take a bookie's answer for one entry."""
        self._on_answer(bookie_id, answer.entry_id, answer.code, answer.data)

    def _on_answer(self, bookie_id: str, entry_id: int, code: int, data: bytes) -> None:
        wanted = self._wanted.get(entry_id)
        if wanted is None or self._done.done():
            return  # another one was faster, or nobody waits any more
        wanted.asked_count -= 1
        entry = self._checked(bookie_id, wanted, entry_id, code, data)
        if entry is not None:
            self._found[entry_id] = entry
            del self._wanted[entry_id]
        else:
            if self._ledger.sticky_bookie == bookie_id:
                self._ledger.sticky_bookie = ""
            self._ask_next(entry_id)
        if not self._wanted:
            self._done.set_result(None)

    def _checked(
        self, bookie_id: str, wanted: _Wanted, entry_id: int, code: int, data: bytes
    ) -> BookieEntry | None:
        """The payload in an answer, None if it has none that is valid."""
        if code == BookieCode.EOK:
            try:
                return unpacked(self._ledger.digest, self._ledger.ledger_id, entry_id, data)
            except CorruptDataError as error:
                wanted.reasons.append(f"{bookie_id} has it damaged ({error})")
        else:
            wanted.reasons.append(f"{bookie_id} said {frames.code_name(code)}")
            wanted.has_unknown |= code not in frames.NOT_HERE
        return None


class _Asked:
    """A bookie that was asked for one entry."""

    __slots__ = ("_bookie_id", "_fetch")

    def __init__(self, fetch: EntryFetch, bookie_id: str) -> None:
        self._fetch = fetch
        self._bookie_id = bookie_id

    def on_answers(self, answers: Sequence[tuple[BookieRequest, BookieAnswer]]) -> None:
        for _, answer in answers:
            self._fetch.on_answer(self._bookie_id, answer)


class _AskedBatch:
    """A bookie that was asked for entries up to before `end`."""

    __slots__ = ("_bookie_id", "_end", "_fetch")

    def __init__(self, fetch: EntryFetch, bookie_id: str, end: int) -> None:
        self._fetch = fetch
        self._bookie_id = bookie_id
        self._end = end

    def on_answers(self, answers: Sequence[tuple[BookieRequest, BookieAnswer]]) -> None:
        for _, answer in answers:
            self._fetch.on_batch(self._bookie_id, self._end, answer)
