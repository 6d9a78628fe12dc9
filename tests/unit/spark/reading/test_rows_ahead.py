"""Record batches that are made in a thread ahead of whoever takes them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import closing

import pyarrow as pa
import pytest

from pulsar_py.spark.reading.rows_ahead import WAITING_COUNT, RowsAhead

LIMIT_SECONDS = 20


def row(number: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"value": [number]})


class Rows:
    """Batches that say what became of them."""

    def __init__(self, count: int, error: Exception | None = None) -> None:
        self._count = count
        self._error = error
        self.made_count = 0
        self.threads: set[str] = set()
        self.is_closed = False
        self.changed = threading.Condition()

    def batches(self) -> Generator[pa.RecordBatch, None, None]:
        try:
            for number in range(self._count):
                self.threads.add(threading.current_thread().name)
                with self.changed:
                    self.made_count += 1
                    self.changed.notify_all()
                yield row(number)
            if self._error is not None:
                raise self._error
        finally:
            self.threads.add(threading.current_thread().name)
            self.is_closed = True

    def wait(self, is_so: Callable[[], bool]) -> None:
        with self.changed:
            assert self.changed.wait_for(is_so, LIMIT_SECONDS)


def numbers(ahead: RowsAhead) -> list[int]:
    return [batch["value"][0].as_py() for batch in ahead]


def test_all_come_in_order_from_another_thread() -> None:
    rows = Rows(50)
    with closing(RowsAhead(rows.batches())) as ahead:
        assert numbers(ahead) == list(range(50))
    assert rows.threads == {"pulsar-rows"}
    assert rows.is_closed


def test_no_rows() -> None:
    with closing(RowsAhead(Rows(0).batches())) as ahead:
        assert numbers(ahead) == []


def test_few_are_made_before_they_are_wanted() -> None:
    rows = Rows(50)
    with closing(RowsAhead(rows.batches())) as ahead:
        rows.wait(lambda: rows.made_count == WAITING_COUNT)
        taken = iter(ahead)
        for count in range(1, 20):
            next(taken)
            rows.wait(lambda wanted=count: rows.made_count == WAITING_COUNT + wanted)


def test_an_error_comes_behind_the_rows_before_it() -> None:
    rows = Rows(3, ValueError("undecodable"))
    with closing(RowsAhead(rows.batches())) as ahead:
        taken = iter(ahead)
        assert [next(taken)["value"][0].as_py() for _ in range(3)] == [0, 1, 2]
        with pytest.raises(ValueError, match="undecodable"):
            next(taken)
    assert rows.is_closed


def test_closing_early_closes_the_rows_in_their_thread() -> None:
    rows = Rows(50)
    ahead = RowsAhead(rows.batches())
    next(iter(ahead))
    ahead.close()
    assert rows.is_closed
    assert rows.made_count < 50
    assert rows.threads == {"pulsar-rows"}
    assert not [each for each in threading.enumerate() if each.name == "pulsar-rows"]


def test_closing_before_anything_was_taken() -> None:
    rows = Rows(50)
    RowsAhead(rows.batches()).close()
    assert rows.is_closed
