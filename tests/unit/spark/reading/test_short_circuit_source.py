"""Pieces that are read from the files of a broker, as far as they are there."""

from __future__ import annotations

import logging
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from pulsar_py.client.messages.message import Message
from pulsar_py.common.position import EARLIEST, Position
from pulsar_py.spark.planning.pieces import Piece
from pulsar_py.spark.reading import short_circuit_source
from pulsar_py.spark.reading.short_circuit_source import stored_runs
from tests.unit.client.entries import batch, single
from tests.unit.client.lender import Lender, descriptors_count

TOPIC = "persistent://public/default/pieces"
ENTRIES = {(7, index): single(b"%d" % index) for index in range(10)}


def piece(first: int, end: int, *, ledger: int = 7, last_ledger: int | None = None) -> Piece:
    return Piece(TOPIC, Position(ledger, first), Position(last_ledger or ledger, end))


def read(lender: Lender, wanted: Piece) -> tuple[list[Message], Position]:
    """The messages, and where the broker has to go on."""
    found: list[Message] = []

    def take() -> Generator[Any, None, Position]:
        return (yield from stored_runs(lender.path, lender.service_url, wanted))

    runs = take()
    try:
        while True:
            found += next(runs)
    except StopIteration as end:
        return found, end.value


def values(messages: list[Message]) -> list[int]:
    return [int(each.data()) for each in messages]


def test_a_whole_piece(tmp_path: Path) -> None:
    with Lender(tmp_path, ENTRIES) as lender:
        messages, position = read(lender, piece(2, 9))
    assert values(messages) == list(range(2, 9))
    assert position == Position(7, 9)


def test_batches_come_whole(tmp_path: Path) -> None:
    payloads = [b"%d" % index for index in range(50)]
    with Lender(tmp_path, {(7, 0): batch(payloads), (7, 1): batch(payloads)}) as lender:
        runs = [*stored_runs(lender.path, lender.service_url, piece(0, 2))]
    assert [len(run) for run in runs] == [50, 50]


def test_the_rest_is_left_to_the_broker(tmp_path: Path) -> None:
    with Lender(tmp_path, ENTRIES) as lender:
        messages, position = read(lender, piece(8, 20))
    assert values(messages) == [8, 9]
    assert position == Position(7, 10)


@pytest.mark.parametrize(
    "wanted",
    [
        piece(-1, 5),
        Piece(TOPIC, EARLIEST, Position(7, 5)),
        piece(0, 5, last_ledger=8),
    ],
)
def test_a_piece_that_may_have_several_ledgers_is_not_begun(tmp_path: Path, wanted: Piece) -> None:
    with Lender(tmp_path, ENTRIES) as lender:
        messages, position = read(lender, wanted)
        assert lender.requests == []
    assert (messages, position) == ([], wanted.start)


def test_a_ledger_that_may_be_another_topic_s_is_not_read(tmp_path: Path) -> None:
    wanted = piece(0, 5)._replace(has_known_ledgers=False)
    with Lender(tmp_path, ENTRIES) as lender:
        messages, position = read(lender, wanted)
        assert lender.requests == []
    assert (messages, position) == ([], wanted.start)


def test_where_nobody_lends_one_line_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    short_circuit_source._warn.cache_clear()
    path = str(tmp_path / "nobody")
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            assert [*stored_runs(path, "pulsar://127.0.0.1:6650", piece(0, 5))] == []
    (record,) = caplog.records
    assert record.message == "short-circuit reads fail, entries are read through the broker"
    assert f"{path}: " in record.__dict__["detail"]


def test_a_reader_that_stops_early_gives_the_files_back(tmp_path: Path) -> None:
    before = descriptors_count()
    with Lender(tmp_path, ENTRIES) as lender:
        runs = stored_runs(lender.path, lender.service_url, piece(0, 9))
        next(runs)
        runs.close()
    assert descriptors_count() <= before
