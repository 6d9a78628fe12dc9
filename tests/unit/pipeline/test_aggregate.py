"""Expressions, names and intervals; tests/spark/test_pipelines.py aggregates."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("pyarrow")

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.pipeline.aggregate import (
    AggregateSettings,
    aggregate,
    aliased,
    counted,
    interval,
    json_message,
    kept_settings,
)
from pulsar_py.pipeline.settings.topics import Cluster, TopicRange


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sum(x)", ("sum(x)", "sum_x")),
        ("cast(a as string) AS b", ("cast(a as string)", "b")),
        ("country", ("country", "country")),
        ("1", ("1", "value")),
    ],
)
def test_names_of_columns(text: str, expected: tuple[str, str]) -> None:
    assert aliased([text]) == [expected]


def test_two_columns_of_one_name() -> None:
    with pytest.raises(ConfigurationError, match="'a'"):
        aliased(["a", "b as a"])


def test_counting_rows() -> None:
    assert counted("count") == "count(1) as count"
    assert counted("count(x)") == "count(x)"


def test_a_window_as_a_message() -> None:
    assert json_message(["a", "b"])[1] == (
        "concat_ws('|', cast(`a` as string), cast(`b` as string)) as __key"
    )


def test_intervals() -> None:
    assert interval(0.25) == "250 milliseconds"


def test_a_target_is_needed() -> None:
    settings = AggregateSettings(
        source=TopicRange(cluster=Cluster(service_url="pulsar://a"), topic="t"),
        keys=["a"],
        aggregates="count",
        window_seconds=60,
    )
    session: Any = None  # never touched
    with pytest.raises(ConfigurationError, match="either a table or a topic"):
        aggregate(session, settings)


def test_a_slide_of_a_window_is_none() -> None:
    def slide(seconds: float | None) -> object:
        settings = AggregateSettings(
            source=TopicRange(cluster=Cluster(service_url="pulsar://a"), topic="t"),
            keys=["a"],
            aggregates="count",
            window_seconds=60,
            slide_seconds=seconds,
        )
        return kept_settings(settings)["--slide"]

    assert (slide(None), slide(60.0), slide(30)) == (None, None, 30)
