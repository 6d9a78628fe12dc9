"""Files on their way into a table; tests/spark/test_pipelines.py has Spark write them."""

# ruff: noqa: E402 - imports stand after what may skip them
from __future__ import annotations

from pathlib import Path

import pytest

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.pipeline.settings import PartitionColumn
from pulsar_py.pipeline.staging import (
    _put_in_place,
    check_partition_columns,
    finish_staging,
    forget_staged,
    spark_path,
)


def stage(table: Path, path: str, rows: int) -> None:
    target = table / "_staging" / "q-1" / path
    target.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"a": list(range(rows))}), target)


def test_files_get_their_names_and_empty_ones_are_left(tmp_path: Path) -> None:
    stage(tmp_path, "d=1/part-0.parquet", 3)
    stage(tmp_path, "d=2/part-0.parquet", 1)
    stage(tmp_path, "part-1.parquet", 0)
    found = _put_in_place(tmp_path / "_staging" / "q-1", tmp_path, "q-1")
    assert [(each.path, each.rows_count) for each in found] == [
        ("d=1/q-1-00000.parquet", 3),
        ("d=2/q-1-00001.parquet", 1),
    ]
    assert all((tmp_path / each.path).stat().st_size == each.size_bytes for each in found)
    finish_staging(tmp_path, "q-1")
    assert not (tmp_path / "_staging" / "q-1").exists()


def test_what_an_attempt_has_left_is_found(tmp_path: Path) -> None:
    stage(tmp_path, "part-0.parquet", 1)
    for name in ("d=1/q-1-00000.parquet", "q-2-00000.parquet"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    forget_staged(tmp_path, "q-1")
    assert [each.name for each in tmp_path.rglob("*.parquet")] == ["q-2-00000.parquet"]


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
        ("nosuch", "there is no column 'nosuch', but code, t_date"),
        ("code=substr(code, 1, 1)", r"code=substr\(code, 1, 1\): there is a column 'code' already"),
        ("CODE=substr(code, 1, 1)", "there is a column 'CODE' already"),
        ("date(t)", r"t_date=date\(t\): there is a column 't_date' already"),
    ],
)
def test_partition_columns_that_cannot_be_made(text: str, told: str) -> None:
    with pytest.raises(ConfigurationError, match=told):
        check_partition_columns(["code", "t_date"], [PartitionColumn.parse(text)])
