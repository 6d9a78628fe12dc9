"""Columns that tables are partitioned by, and names in SQL."""

from __future__ import annotations

import pytest

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.pipeline.settings.columns import PartitionColumn, quoted


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("country", PartitionColumn("country", "`country`")),
        ("date(__publishTime)", PartitionColumn("publishTime_date", "date(__publishTime)")),
        ("d = date_trunc('MONTH', t)", PartitionColumn("d", "date_trunc('MONTH', t)")),
    ],
)
def test_partition_columns(text: str, column: PartitionColumn) -> None:
    assert PartitionColumn.parse(text) == column


@pytest.mark.parametrize("text", ["", "a b", "=x", "x=", "date(a, b)"])
def test_what_is_no_partition_column(text: str) -> None:
    with pytest.raises(ConfigurationError, match="partition-by"):
        PartitionColumn.parse(text)


def test_names_in_sql() -> None:
    assert quoted("a`b") == "`a``b`"
