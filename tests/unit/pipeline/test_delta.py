"""Delta tables made of files that others wrote."""

# ruff: noqa: E402 - imports stand after what may skip them
from __future__ import annotations

from pathlib import Path

import pytest

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
deltalake = pytest.importorskip("deltalake")

from pulsar_py.pipeline.delta import DeltaLakeTable
from pulsar_py.pipeline.tables import Commit, Schema, TableFile, TableSchemaError, Transaction
from tests.unit.pipeline.test_tables import schema

PARTITIONED = schema(a="long", d="string")


@pytest.fixture
def table(tmp_path: Path) -> DeltaLakeTable:
    return DeltaLakeTable(tmp_path / "table")


def write(table: DeltaLakeTable, path: str, **columns: list[object]) -> TableFile:
    target = table.path / path
    target.parent.mkdir(parents=True, exist_ok=True)
    rows = pa.table(columns)
    pq.write_table(rows, target)
    return TableFile(path, target.stat().st_size, rows.num_rows)


def commit(
    table: DeltaLakeTable, file: TableFile, batch: int, columns: Schema, *, overwrite: bool = False
) -> None:
    table.commit(
        Commit(
            added=[file],
            schema=columns,
            partition_by=["d"],
            transaction=Transaction("q", batch),
            is_overwrite=overwrite,
        )
    )


def rows(table: DeltaLakeTable) -> list[dict[str, object]]:
    found: list[dict[str, object]] = deltalake.DeltaTable(table.path).to_pyarrow_table().to_pylist()
    return sorted(found, key=lambda row: str(row["a"]))


def test_a_table_that_is_not_there(table: DeltaLakeTable) -> None:
    assert table.schema() is None
    assert table.last_batch("q") is None
    assert not table.files()
    assert table.compact(100).files_before == 0


def test_commits_add_files_columns_and_transactions(table: DeltaLakeTable) -> None:
    first = write(table, "d=x%3Ay/1.parquet", a=[1])
    commit(table, first, 0, PARTITIONED)
    commit(
        table,
        write(table, "d=z/2.parquet", a=[2], b=[5]),
        1,
        schema(a="long", d="string", b="long"),
    )
    assert rows(table) == [{"a": 1, "d": "x:y", "b": None}, {"a": 2, "d": "z", "b": 5}]
    assert table.last_batch("q") == 1
    assert table.last_batch("other") is None
    assert {each.rows_count for each in table.files()} == {1}
    assert first.path in {each.path for each in table.files()}


def test_types_that_do_not_fit(table: DeltaLakeTable) -> None:
    commit(table, write(table, "d=x/1.parquet", a=[1]), 0, schema(a="integer", d="string"))
    with pytest.raises(TableSchemaError, match="do not widen"):
        commit(table, write(table, "d=x/2.parquet", a=[1]), 1, PARTITIONED)


def test_an_overwrite(table: DeltaLakeTable) -> None:
    commit(table, write(table, "d=x/1.parquet", a=[1]), 0, PARTITIONED)
    commit(table, write(table, "d=y/2.parquet", a=[2]), 1, PARTITIONED, overwrite=True)
    assert rows(table) == [{"a": 2, "d": "y"}]
    assert table.last_batch("q") == 1


def test_small_files_become_one(table: DeltaLakeTable) -> None:
    for batch in range(3):
        commit(table, write(table, f"d=x/{batch}.parquet", a=[batch]), batch, PARTITIONED)
    result = table.compact(1 << 20)
    assert (result.files_before, result.files_after) == (3, 1)
    assert len(table.files()) == 1
    assert [row["a"] for row in rows(table)] == [0, 1, 2]
    assert table.last_batch("q") == 2
