"""EntryFetch: reads a run of entries, each from the first of its bookies that has it whole (edge).

All entries of the run are asked for at once, each at one bookie; where one can't give it the next
of the write set is asked. Bookies that are suspect come last. A replica that fails its digest is as
good as none.

Source: PendingReadOp in Apache BookKeeper.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from pulsar_py.bookkeeper import frames
from pulsar_py.bookkeeper.asking import read_entry_request
from pulsar_py.bookkeeper.cluster import LedgerCluster, LedgerInUse
from pulsar_py.bookkeeper.connection import BookieRequest
from pulsar_py.bookkeeper.entry_format import BookieEntry, unpacked
from pulsar_py.bookkeeper.frames import BookieAnswer, BookieCode, RequestFlags
from pulsar_py.common.errors import CorruptDataError, StorageError, StoreUnavailableError


class _Wanted:
    """One entry of the run."""

    __slots__ = ("bookies", "has_unknown", "reasons")

    def __init__(self, bookies: list[str]) -> None:
        self.bookies = bookies  # to be asked, the next one last
        self.reasons: list[str] = []  # why those asked did not give it
        self.has_unknown = False  # one of them may have it


class EntryFetch:
    """One reading of a run; used once."""

    def __init__(
        self, cluster: LedgerCluster, ledger: LedgerInUse, first_entry_id: int, last_entry_id: int
    ) -> None:
        self._cluster = cluster
        self._ledger = ledger
        self._first = first_entry_id
        self._wanted: dict[int, _Wanted] = {}  # not decided so far
        self._found: dict[int, BookieEntry] = {}
        self._errors: dict[int, StorageError] = {}
        self._last = last_entry_id
        self._done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def run(self) -> list[BookieEntry]:
        """The entries up to the first that can't be read, at least one.

        Raises:
            StoreUnavailableError: The first can't be read now.
            CorruptDataError: No bookie has the first whole.
        """
        metadata = self._ledger.recorded.metadata
        is_suspect = self._cluster.bookies.is_failing
        for entry_id in range(self._first, self._last + 1):
            ensemble = metadata.ensemble_at(entry_id)
            bookies = [ensemble[index] for index in metadata.write_set(entry_id)]
            bookies.sort(key=is_suspect)
            self._wanted[entry_id] = _Wanted(bookies[::-1])
        for entry_id in range(self._first, self._last + 1):
            self._ask_next(entry_id)
        await self._done
        run: list[BookieEntry] = []
        while (entry := self._found.get(self._first + len(run))) is not None:
            run.append(entry)
        if not run:
            raise self._errors[self._first]
        return run

    def _ask_next(self, entry_id: int) -> None:
        wanted = self._wanted[entry_id]
        if not wanted.bookies:
            del self._wanted[entry_id]
            text = f"ledger {self._ledger.ledger_id}: entry {entry_id}: {'; '.join(wanted.reasons)}"
            self._errors[entry_id] = (
                StoreUnavailableError(text) if wanted.has_unknown else CorruptDataError(text)
            )
            return
        link = self._cluster.bookies.link(wanted.bookies.pop())
        sink = _Asked(self, link.bookie_id)
        link.send(
            BookieRequest(*read_entry_request(self._ledger, entry_id, RequestFlags.NONE), sink)
        )

    def on_answer(self, bookie_id: str, answer: BookieAnswer) -> None:
        """Take a bookie's answer for one entry."""
        if self._done.done():
            return  # nobody waits any more
        entry_id = answer.entry_id
        wanted = self._wanted[entry_id]
        if answer.code == BookieCode.EOK:
            try:
                self._found[entry_id] = unpacked(
                    self._ledger.digest, self._ledger.ledger_id, entry_id, answer.data
                )
                del self._wanted[entry_id]
            except CorruptDataError as error:
                wanted.reasons.append(f"{bookie_id} has it damaged ({error})")
                self._ask_next(entry_id)
        else:
            wanted.reasons.append(f"{bookie_id} said {frames.code_name(answer.code)}")
            wanted.has_unknown |= answer.code not in frames.NOT_HERE
            self._ask_next(entry_id)
        if not self._wanted:
            self._done.set_result(None)


class _Asked:
    """A bookie that was asked for one entry."""

    __slots__ = ("_bookie_id", "_fetch")

    def __init__(self, fetch: EntryFetch, bookie_id: str) -> None:
        self._fetch = fetch
        self._bookie_id = bookie_id

    def on_answers(self, answers: Sequence[tuple[BookieRequest, BookieAnswer]]) -> None:
        for _, answer in answers:
            self._fetch.on_answer(self._bookie_id, answer)
