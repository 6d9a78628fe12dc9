"""`RowsAhead`: makes record batches in a thread while those before them are given to Spark (edge).

Where a task reads files itself, nothing is under way while it hands rows over. Over TCP that is no
loss: the connection holds the rows of a millisecond or two, which Spark uses while the task reads.
A Unix domain socket holds a fifth of that, and Spark would wait, so there the next rows are made
meanwhile. All that the thread iterates over is used, and closed, by the thread alone.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Generator, Iterator
from contextlib import closing
from typing import Final

import pyarrow as pa

__all__ = ["RowsAhead"]

WAITING_COUNT: Final = 2
"""So many record batches wait at most, besides the one that is made."""


class RowsAhead:
    """The record batches of one task, to be iterated over once. The owner closes it."""

    def __init__(self, rows: Generator[pa.RecordBatch, None, None]) -> None:
        """Begin to make `rows`, which belong to this object from now on."""
        self._rows = rows
        # Guards all below, and tells when it changed.
        self._changed = threading.Condition()
        self._waiting: deque[pa.RecordBatch] = deque()
        self._is_done = False
        # The error that ended the rows, if one did.
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._work, name="pulsar-rows", daemon=True)
        self._thread.start()

    def _work(self) -> None:
        # Hot path: batch read in `make bench-spark`, short-circuit.
        try:
            with closing(self._rows) as rows:
                for batch in rows:
                    if not self._add(batch):
                        break
                    del batch  # else it would be held until the next is there
        except BaseException as error:  # noqa: BLE001 - raised by `__iter__`
            self._error = error
        with self._changed:
            self._is_done = True
            self._changed.notify()

    def _add(self, batch: pa.RecordBatch) -> bool:
        """Add a batch, and wait until the next one is wanted; whether it is."""
        with self._changed:
            self._waiting.append(batch)
            self._changed.notify()
            del batch
            self._changed.wait_for(lambda: len(self._waiting) < WAITING_COUNT or self._is_done)
            return not self._is_done

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """The batches, in order; raises the error of making them, if any, behind them."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._is_done)
                if not self._waiting:
                    break
                batch = self._waiting.popleft()
                self._changed.notify()
            yield batch
            del batch
        if self._error is not None:
            raise self._error

    def close(self) -> None:
        """Stop making rows; returns when the thread has closed what it used."""
        with self._changed:
            self._is_done = True
            self._changed.notify()
        self._thread.join()
