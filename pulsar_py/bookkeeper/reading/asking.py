"""Sends read requests to one bookie after the other, or to a whole ensemble (edge).

`ask` is one request and its answer. `last_entries` asks all bookies of an ensemble for their last
entry, with or without fencing the ledger, until enough have answered (`Coverage`).

Source: ReadLastConfirmedOp in Apache BookKeeper.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from pulsar_py.bookkeeper.bookies.bookie_statistics import NO_FAILURES
from pulsar_py.bookkeeper.bookies.bookies import BookieLink
from pulsar_py.bookkeeper.bookies.requests import BookieRequest, OneAnswer
from pulsar_py.bookkeeper.cluster.cluster import LedgerCluster, LedgerInUse
from pulsar_py.bookkeeper.metadata.ledger_paths import MAX_LEDGER_ID
from pulsar_py.bookkeeper.protocol import frames
from pulsar_py.bookkeeper.protocol.entry_format import LAST_ENTRY, BookieEntry, unpacked
from pulsar_py.bookkeeper.protocol.frames import (
    BookieAnswer,
    BookieCode,
    BookieOperation,
    RequestFlags,
)
from pulsar_py.bookkeeper.reading.read_quorum import Coverage
from pulsar_py.common.errors import CorruptDataError, StorageError, StoreUnavailableError


def read_entry_request(
    ledger: LedgerInUse, entry_id: int, flags: RequestFlags
) -> tuple[int, int, int, tuple[bytes]]:
    """The values of a `BookieRequest` that reads an entry, without its sink."""
    key = ledger.master_key if RequestFlags.FENCE in flags else b""
    frame = frames.read_request(ledger.ledger_id, entry_id, flags, key)
    return BookieOperation.READ, ledger.ledger_id, entry_id, (frame,)


async def ask(
    link: BookieLink, ledger: LedgerInUse, entry_id: int, flags: RequestFlags
) -> BookieAnswer:
    """Read one entry from one bookie; returns its answer, or one that stands for no answer."""
    one = OneAnswer()
    link.send(BookieRequest(*read_entry_request(ledger, entry_id, flags), one))
    return await one.answer


async def is_answering(link: BookieLink) -> bool:
    """Whether a bookie answers: it is asked for an entry of a ledger that does not exist."""
    one = OneAnswer()
    frame = frames.read_request(MAX_LEDGER_ID, 0)
    link.send(BookieRequest(BookieOperation.READ, MAX_LEDGER_ID, 0, (frame,), one))
    return (await one.answer).code in NO_FAILURES


class _Everybody:
    """Waits until enough of an ensemble have answered."""

    def __init__(self, ledger: LedgerInUse) -> None:
        metadata = ledger.recorded.metadata
        self._ledger = ledger
        self._coverage = Coverage(
            ensemble_size=metadata.ensemble_size,
            write_quorum_size=metadata.write_quorum_size,
            ack_quorum_size=metadata.ack_quorum_size,
        )
        self.entries: list[BookieEntry] = []
        self.unknown: list[str] = []  # who could not say, and why
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def on_answer(self, index: int, bookie_id: str, answer: BookieAnswer) -> None:
        """Take the answer of the bookie at a place."""
        if self.done.done():
            return
        name = f"ledger {self._ledger.ledger_id}"
        is_known = answer.code in frames.NOT_HERE
        if answer.code == BookieCode.EUA:
            self.done.set_exception(StorageError(f"{name}: {bookie_id} has another key for it"))
            return
        if answer.code == BookieCode.EOK:
            try:
                entry = unpacked(
                    self._ledger.digest, self._ledger.ledger_id, LAST_ENTRY, answer.data
                )
            except CorruptDataError as error:
                self.unknown.append(f"{bookie_id}: {error}")
            else:
                self.entries.append(entry)
                is_known = True
        elif not is_known:
            self.unknown.append(f"{bookie_id}: {frames.code_name(answer.code)}")
        self._coverage.on_answer(index, is_known=is_known)
        if self._coverage.is_covered:
            self.done.set_result(None)
        elif self._coverage.is_over:
            self.done.set_exception(
                StoreUnavailableError(f"{name}: too few bookies answered: {self.unknown}")
            )


class _Place:
    """The sink of one bookie of the ensemble."""

    def __init__(self, everybody: _Everybody, index: int, bookie_id: str) -> None:
        self._everybody = everybody
        self._index = index
        self._bookie_id = bookie_id

    def on_answers(self, answers: Sequence[tuple[BookieRequest, BookieAnswer]]) -> None:
        self._everybody.on_answer(self._index, self._bookie_id, answers[0][1])


async def last_entries(
    cluster: LedgerCluster, ledger: LedgerInUse, flags: RequestFlags
) -> list[BookieEntry]:
    """The last entries that the bookies of the last segment have; of those that have any.

    Raises:
        StoreUnavailableError: Too few could say.
        StorageError: The ledger has another key.
    """
    everybody = _Everybody(ledger)
    for index, bookie_id in enumerate(ledger.recorded.metadata.last_segment.bookie_ids):
        place = _Place(everybody, index, bookie_id)
        request = BookieRequest(*read_entry_request(ledger, LAST_ENTRY, flags), place)
        cluster.bookies.link(bookie_id).send(request)
    await everybody.done
    return everybody.entries
