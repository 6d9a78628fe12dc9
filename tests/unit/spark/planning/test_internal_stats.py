"""Internal statistics of brokers become layouts."""

from __future__ import annotations

from typing import Any

import pytest

from pulsar_py.common.errors import RemoteProtocolError
from pulsar_py.common.position import Position
from pulsar_py.spark.planning.internal_stats import layout_of
from pulsar_py.spark.planning.pieces import LedgerExtent


def stats(**changes: Any) -> dict[str, Any]:
    return {
        "currentLedgerEntries": 4,
        "currentLedgerSize": 400,
        "lastConfirmedEntry": "9:3",
        "ledgers": [
            {"ledgerId": 5, "entries": 10, "size": 1000},
            {"ledgerId": 9, "entries": 0, "size": 0},
        ],
    } | changes


def test_the_open_ledger_has_its_figures_elsewhere() -> None:
    layout = layout_of("t", stats())
    assert layout.ledgers == [LedgerExtent(5, 10, 1000), LedgerExtent(9, 4, 400)]
    assert layout.end == Position(9, 4)


def test_entries_that_are_not_confirmed_don_t_count() -> None:
    layout = layout_of("t", stats(lastConfirmedEntry="9:1"))
    assert layout.ledgers[-1] == LedgerExtent(9, 2, 200)


def test_a_new_ledger_has_nothing_yet() -> None:
    layout = layout_of(
        "t", stats(lastConfirmedEntry="5:9", currentLedgerEntries=0, currentLedgerSize=0)
    )
    assert layout.end == Position(5, 10)


def test_a_fresh_topic_is_empty() -> None:
    layout = layout_of(
        "t",
        {
            "ledgers": [{"ledgerId": 3, "entries": 0, "size": 0}],
            "lastConfirmedEntry": "3:-1",
            "currentLedgerEntries": 0,
            "currentLedgerSize": 0,
        },
    )
    assert layout.start == layout.end == Position(3, -1)


@pytest.mark.parametrize(
    "changes",
    [
        {"ledgers": None},
        {"ledgers": [{"ledgerId": 5}]},
        {"lastConfirmedEntry": "x"},
        {"ledgers": [{"ledgerId": 9, "entries": 1, "size": 1}] * 2},
    ],
)
def test_what_makes_no_sense_names_the_topic(changes: dict[str, Any]) -> None:
    with pytest.raises(RemoteProtocolError, match="t: internal statistics"):
        layout_of("t", stats(**changes))
