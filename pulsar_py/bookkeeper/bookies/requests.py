"""Requests to a bookie, and the interface by which their answers are delivered.

A `BookieRequest` is answered once, with the bookie's answer or one that stands for none. An
`AddRequest` adds a run of one or more entries: what was stored of it is told as entry ids, as they
are answered, and an error once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol

from pulsar_py.bookkeeper.protocol.frames import BookieAnswer, BookieOperation, StoredAnswers
from pulsar_py.common.buffer import EntryBytes


class AnswerSink(Protocol):
    """The caller that gets the answers to its requests."""

    def on_answers(self, answers: Sequence[tuple[BookieRequest, BookieAnswer]]) -> None:
        """Take the answers that came together, in their order; of adds only the errors."""


class AddSink(AnswerSink, Protocol):
    """The caller that adds entries."""

    def on_stored(self, entry_ids: Sequence[int]) -> None:
        """Take the ids of the entries that the bookie has stored, those of one read together.

        They are a range where they follow one another.
        """


class OneAnswer:
    """Waits for the answer to one request."""

    def __init__(self) -> None:
        self.answer: asyncio.Future[BookieAnswer] = asyncio.get_running_loop().create_future()
        """Done with the bookie's answer, or one that stands for none."""

    def on_answers(self, answers: Sequence[tuple[BookieRequest, BookieAnswer]]) -> None:
        """Take the answer."""
        if not self.answer.done():
            self.answer.set_result(answers[0][1])


class BookieRequest:
    """A request, and the sink of its answer."""

    __slots__ = ("deadline", "entry_id", "ledger_id", "operation", "pieces", "sink", "size_bytes")

    def __init__(
        self,
        operation: int,
        ledger_id: int,
        entry_id: int,
        pieces: Sequence[EntryBytes],
        sink: AnswerSink,
    ) -> None:
        """`pieces` make up the frames; nobody changes their memory any more.

        They are let go once they are handed to the transport: nothing is sent twice from here.
        """
        self.operation = operation
        self.ledger_id = ledger_id
        self.entry_id = entry_id
        self.pieces = pieces
        self.size_bytes = sum(map(len, pieces))
        self.sink: AnswerSink | None = sink  # None: nobody waits any more
        self.deadline = 0.0  # in monotonic seconds; set when it is handed to a connection

    def failed(self, code: int) -> BookieAnswer:
        """The answer that stands for no answer."""
        return BookieAnswer(self.operation, code, self.ledger_id, self.entry_id)


class AddRequest(BookieRequest):
    """Adds entries `entry_id` to `last_entry_id` of a ledger, with a frame for each."""

    __slots__ = ("add_sink", "answers", "early", "last_entry_id", "next_entry_id")

    def __init__(
        self,
        ledger_id: int,
        entry_id: int,
        last_entry_id: int,
        pieces: Sequence[EntryBytes],
        sink: AddSink,
        *,
        answers: StoredAnswers | None = None,
    ) -> None:
        """`pieces` make up the frames, as in any request; `answers` is of the same entries."""
        super().__init__(BookieOperation.ADD, ledger_id, entry_id, pieces, sink)
        self.add_sink = sink
        self.answers = answers or StoredAnswers(ledger_id, entry_id, last_entry_id)
        self.last_entry_id = last_entry_id
        self.next_entry_id = entry_id  # all before it are answered
        self.early: set[int] | None = None  # answered, of those behind it

    def failed(self, code: int) -> BookieAnswer:
        """The answer that stands for no answer, to the first entry without one."""
        return BookieAnswer(self.operation, code, self.ledger_id, self.next_entry_id)

    @property
    def is_answered(self) -> bool:
        """Whether all entries have been answered."""
        return self.next_entry_id > self.last_entry_id
