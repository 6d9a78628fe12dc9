"""Ranges, columns and expressions; tests/spark has data frames."""

from __future__ import annotations

import pytest

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.pipeline.settings.topics import Cluster, TopicRange
from pulsar_py.pipeline.topics import split_expressions, with_columns

SOURCE = TopicRange(cluster=Cluster(service_url="pulsar://a"), topic="t")


def test_expressions() -> None:
    text = "a, f(b, c) as d, 'x,y' as e, m[1]"
    assert split_expressions(text) == ["a", "f(b, c) as d", "'x,y' as e", "m[1]"]


@pytest.mark.parametrize("text", ["", "a,", "f(a", "'a", ",a"])
def test_what_are_no_expressions(text: str) -> None:
    with pytest.raises(ConfigurationError, match="is not a list of SQL"):
        split_expressions(text)


def test_further_columns_stand_behind_the_usual_ones() -> None:
    found = with_columns(SOURCE, "__size", "__key").columns
    assert found[:2] == ("__key", "__topic")
    assert found[-2:] == ("__messageProperties", "__size")
    assert with_columns(with_columns(SOURCE, "all"), "__size").columns[-1] == "__size"
