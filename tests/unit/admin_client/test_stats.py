"""JSON of REST as values."""

from __future__ import annotations

import pytest

from pulsar_py.admin_client.stats import InternalStats, LedgerInfo, SubscriptionStats, TopicStats
from pulsar_py.common.position import Position

INTERNAL = {
    "numberOfEntries": 15,
    "totalSize": 1500,
    "lastConfirmedEntry": "9:4",
    "currentLedgerEntries": 5,
    "currentLedgerSize": 500,
    "ledgers": [
        {"ledgerId": 7, "entries": 10, "size": 1000},
        {"ledgerId": 9, "entries": 0, "size": 0},
    ],
    "cursors": {"s": {"markDeletePosition": "7:3"}},
}


def test_what_is_missing_is_nothing() -> None:
    stats = TopicStats.of({})
    assert stats.backlog_bytes == 0
    assert stats.oldest_backlog_age_seconds == -1
    assert not stats.subscriptions


def test_rates_of_a_subscription_count_entries() -> None:
    json = {
        "msgBacklog": 100,
        "msgRateOut": 60.0,
        "msgRateRedeliver": 10.0,
        "consumers": [{"avgMessagesPerEntry": 4}, {"avgMessagesPerEntry": 6}],
    }
    stats = SubscriptionStats.of("s", json)
    assert stats.messages_per_entry == 5
    assert stats.entry_rate_out == 10
    assert SubscriptionStats.of("s", {}).entry_rate_out == 0


def test_the_open_ledger_has_its_own_numbers() -> None:
    stats = InternalStats.of(INTERNAL)
    assert stats.ledgers == (LedgerInfo(7, 10, 1000), LedgerInfo(9, 5, 500))
    assert stats.mark_delete_positions == {"s": Position(7, 3)}


@pytest.mark.parametrize(
    ("position", "left"),
    [
        (Position(7, 4), LedgerInfo(7, 11, 1100)),
        (Position(7, 10), LedgerInfo(9, 5, 500)),
        (Position(9, 5), LedgerInfo(-1, 0, 0)),
        (Position(3, 2), LedgerInfo(7, 15, 1500)),
        (Position(-1, -1), LedgerInfo(7, 15, 1500)),
    ],
)
def test_what_is_left_from_a_position(position: Position, left: LedgerInfo) -> None:
    assert InternalStats.of(INTERNAL).left_from(position) == left
