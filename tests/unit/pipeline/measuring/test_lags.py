"""Lags, their rates and ages, and their texts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pulsar_py.admin_client import InternalStats, TopicStats
from pulsar_py.common.position import Position
from pulsar_py.pipeline.measuring.lags import (
    HEADERS,
    Lag,
    age_of,
    checkpoint_lag,
    duration_text,
    lag_block,
    lag_cells,
    lag_fields,
    subscription_lags,
)

LAG = Lag(
    topic="persistent://a/b/t",
    name="s",
    kind="Shared",
    backlog_entries=100,
    backlog_bytes=5000,
    age_seconds=90,
    rate_in=5.0,
    rate_out=15.0,
    consumers=1,
)


@pytest.mark.parametrize(
    ("changed", "seconds"),
    [
        ({}, 10.0),
        ({"rate_out": 5.0}, None),
        ({"rate_out": 0.0}, None),
        ({"backlog_entries": 0, "rate_out": 0.0}, 0.0),
    ],
)
def test_time_to_drain(changed: dict[str, float], seconds: float | None) -> None:
    assert replace(LAG, **changed).seconds_to_drain == seconds  # type: ignore[arg-type]


def test_subscriptions_of_a_topic() -> None:
    stats = TopicStats.of(
        {
            "msgRateIn": 40.0,
            "oldestBacklogMessageAgeSeconds": 30,
            "oldestBacklogMessageSubscriptionName": "b",
            "subscriptions": {
                "b": {"msgBacklog": 3, "consumers": [{"avgMessagesPerEntry": 4}]},
                "a": {"msgBacklog": 1},
                "c": {"msgBacklog": 1, "earliestMsgPublishTimeInBacklog": 5000},
                "d": {"msgBacklog": 0},
            },
        }
    )
    lags = subscription_lags("t", stats, 25_500)
    assert [(each.name, each.age_seconds, each.rate_in) for each in lags] == [
        ("a", None, 40.0),
        ("b", 30, 10.0),
        ("c", 20, 40.0),
        ("d", 0, 40.0),
    ]


def test_a_checkpoint() -> None:
    stats = InternalStats.of({"ledgers": [{"ledgerId": 7, "entries": 10, "size": 1000}]})
    lag = checkpoint_lag("t", "query", Position(7, 4), stats)
    assert (lag.kind, lag.backlog_entries, lag.backlog_bytes) == ("checkpoint", 6, 600)
    assert lag_cells(lag)[5:] == ("-", "-", "-", "-"), "nobody tells its age and its rates"
    assert lag_fields(lag)["rate_in"] is None


def test_how_it_is_shown() -> None:
    cells = lag_cells(LAG)
    assert len(cells) == len(HEADERS)
    assert cells == ("a/b/t", "s", "Shared", "100", "5,000", "1m 30s", "5.0", "15.0", "10s")
    assert lag_cells(replace(LAG, rate_out=0.0))[-1] == "never"
    unknown = lag_cells(replace(LAG, backlog_bytes=-1, age_seconds=None))
    assert unknown[4:6] == ("-", "-"), "what nobody knows"
    assert lag_fields(LAG)["seconds_to_drain"] == 10.0


@pytest.mark.parametrize(
    ("seconds", "text"), [(None, ""), (0, "0s"), (61, "1m 1s"), (183_600, "2d 3h"), (0.4, "0s")]
)
def test_lengths_of_time(seconds: float | None, text: str) -> None:
    assert duration_text(seconds) == text


def test_clocks_that_differ_make_no_negative_age() -> None:
    assert (age_of(2000, 1000), age_of(1000, 3999)) == (0, 2)


def test_two_lines_for_narrow_terminals() -> None:
    assert lag_block(LAG) == (
        "a/b/t  s\n    type Shared, backlog entries 100, bytes 5,000, age 1m 30s, in/s 5.0,"
        " out/s 15.0, drained in 10s"
    )
