"""`StoredRange`: reads consecutive entries of a ledger from the files of a broker (edge).

    ask where entries lie --> read a block of them --> check and decode each

Each call reads one block, about a megabyte. The range ends with the first entry that is not in the
broker's files, can't be read or verified, or is none that `stored_messages` takes: `position` says
which, and the broker is the one to ask for it and all behind it.

Blocks are read into memory that is used again, rather than mapped: a disk that fails, or a file
that was cut, is an error here, where it would end the process by a signal in a mapping.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Sequence
from typing import Final

from pulsar_py.client.messages.message import Message
from pulsar_py.client.receiving.received_batch import ReceivedBatch
from pulsar_py.client.short_circuit.lending_connection import (
    LendingConnection,
    NotLentError,
    StoredRun,
)
from pulsar_py.client.short_circuit.stored_entries import Messages, stored_messages
from pulsar_py.common.disks.reused_memory import ReusedMemory
from pulsar_py.common.names import TopicName
from pulsar_py.common.position import Position

__all__ = ["StoredRange"]

BLOCK_BYTES: Final = 1 << 20
"""Entries are read together up to so many bytes; a larger one alone."""
FIRST_BYTES: Final = 4 << 20
"""The broker looks up so many bytes of entries before the first is read,"""
ASKED_BYTES: Final = 32 << 20
"""and so many at a time while others are read: 60 us of the broker for a run."""
_KEPT_BYTES: Final = 16 << 20


class StoredRange:
    """Entries `[start, end)` of one ledger. Not thread-safe; blocks."""

    def __init__(
        self, path: str, service_url: str, topic: str, start: Position, end: Position
    ) -> None:
        """Nothing is opened yet.

        Args:
            path: The broker's socket.
            service_url: Has to lead to the same broker.
            topic: The name that messages get.
            start: The first entry.
            end: Behind the last entry, in the same ledger.
        """
        assert start.ledger_id == end.ledger_id, (start, end)
        self._path = path
        self._service_url = service_url
        self._name = TopicName.parse(topic)
        self.position = start
        """The first entry that was not given out."""
        self._end = end
        self._connection: LendingConnection | None = None
        # Where the next entries lie, and the first one for which that is not known.
        self._places: deque[StoredRun] = deque()
        self._named_until = start.entry_id
        self._memory = ReusedMemory(_KEPT_BYTES)
        self._has_ended = False
        # Why the broker lends nothing; None unless it was asked in vain.
        self.refusal: str | None = None

    def read_block(self) -> list[Messages] | None:
        """The next messages, in order, in runs; None if there are no more.

        A `ReceivedBatch` is a run of its own.
        """
        # Hot path: batch read in `make bench-spark`.
        if self._has_ended or self.position >= self._end:
            return None
        try:
            if not self._places:
                self._places.extend(self._places_of_more())
            if self._places:
                return self._read_and_decode()
        except NotLentError as error:
            self.refusal = str(error)
        except (OSError, EOFError) as error:
            self.refusal = f"{self._path}: reading entry {self.position}: {error}"
        self._has_ended = True
        return None

    def _places_of_more(self) -> list[StoredRun]:
        """Where the next entries lie; empty if the first of them has to come from the broker.

        The broker looks for those behind them meanwhile.
        """
        if self._connection is None:
            self._connection = LendingConnection.open(self._path, self._service_url)
            self._request(self._connection, FIRST_BYTES)
        elif self._named_until == self._end.entry_id:
            return []
        runs = self._connection.answer()
        self._named_until += sum(len(run.lengths) for run in runs)
        if runs and self._named_until < self._end.entry_id:
            self._request(self._connection, ASKED_BYTES)
        return runs

    def _request(self, connection: LendingConnection, limit_bytes: int) -> None:
        ledger_id, last = self._end.ledger_id, self._end.entry_id - 1
        connection.request(ledger_id, self._named_until, last, limit_bytes)

    def _read_and_decode(self) -> list[Messages]:
        run = self._places.popleft()
        lengths = run.lengths
        count, size = 1, lengths[0]
        while count < len(lengths) and size + lengths[count] <= BLOCK_BYTES:
            size += lengths[count]
            count += 1
        if count < len(lengths):
            self._places.appendleft(StoredRun(run.descriptor, run.offset + size, lengths[count:]))
        # Before memory is taken for a large entry: a wrong length may be 2 GB.
        if size > BLOCK_BYTES and os.fstat(run.descriptor).st_size < run.offset + size:
            raise _past_end(run.offset, size)
        block = self._memory.take(size)
        if os.preadv(run.descriptor, [block], run.offset) < size:
            raise _past_end(run.offset, size)
        return self._decode(block, lengths[:count])

    def _decode(self, block: memoryview, lengths: Sequence[int]) -> list[Messages]:
        """The messages of entries up to the first one that can't be used."""
        runs: list[Messages] = []
        singles: list[Message] = []
        ledger_id, entry_id = self.position
        at = 0
        for length in lengths:
            found = stored_messages(block[at : at + length], (ledger_id, entry_id), self._name)
            if found is None:
                self._has_ended = True
                break
            if isinstance(found, ReceivedBatch):
                if singles:
                    runs.append(singles)
                    singles = []
                runs.append(found)
            else:
                singles += found
            at += length
            entry_id += 1
        if singles:
            runs.append(singles)
        self.position = Position(ledger_id, entry_id)
        return runs

    def close(self) -> None:
        """Give back the broker's files; messages that were given out stay valid."""
        self._has_ended = True
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _past_end(offset: int, size: int) -> EOFError:
    return EOFError(f"the file ends within {size} bytes at {offset}")
