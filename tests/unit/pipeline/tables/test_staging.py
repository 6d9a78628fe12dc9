"""Files on their way into a table; tests/spark/test_pipelines.py has Spark write them."""

# ruff: noqa: E402 - imports stand after what may skip them
from __future__ import annotations

from pathlib import Path

import pytest

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.pipeline.settings.columns import PartitionColumn
from pulsar_py.pipeline.tables.attempts import Attempt
from pulsar_py.pipeline.tables.staging import check_partition_columns, put_in_place, spark_path


def test_files_get_their_names_and_empty_ones_are_left(tmp_path: Path) -> None:
    own = Attempt(tmp_path, "q-1")
    for path, rows in (("d=1/part-0.parquet", 3), ("d=2/part-0.parquet", 1), ("part-1.parquet", 0)):
        target = own.staging / path
        target.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"a": list(range(rows))}), target)
    found = put_in_place(own)
    assert [(each.path, each.rows_count) for each in found] == [
        ("d=1/q-1-00000.parquet", 3),
        ("d=2/q-1-00001.parquet", 1),
    ]
    assert all((tmp_path / each.path).stat().st_size == each.size_bytes for each in found)


def test_paths_keep_their_signs() -> None:
    assert spark_path(Path("/a b/c=%3A")) == "file:///a b/c=%3A"


@pytest.mark.parametrize(
    "text", ["code", "Code", "code=code", "first=substr(code, 1, 1)", "date(t)"]
)
def test_partition_columns_that_can_be_made(text: str) -> None:
    check_partition_columns(["code", "t"], [PartitionColumn.parse(text)])


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("nosuch", "there is no column 'nosuch'; the rows have code, t_date"),
        ("code=substr(code, 1, 1)", r"code=substr\(code, 1, 1\): there is a column 'code' already"),
        ("CODE=substr(code, 1, 1)", "there is a column 'CODE' already"),
        ("date(t)", r"t_date=date\(t\): there is a column 't_date' already"),
    ],
)
def test_partition_columns_that_cannot_be_made(text: str, told: str) -> None:
    with pytest.raises(ConfigurationError, match=told):
        check_partition_columns(["code", "t_date"], [PartitionColumn.parse(text)])
