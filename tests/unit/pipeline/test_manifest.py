"""A table's own log."""

# ruff: noqa: E402 - imports stand after what may skip them
from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.pipeline.manifest import WHOLE_EVERY, ManifestTable
from pulsar_py.pipeline.tables import Commit, TableFile, TableSchemaError, Transaction
from tests.unit.pipeline.test_tables import schema


def write(table: ManifestTable, path: str, **columns: Sequence[object]) -> TableFile:
    target = table.path / path
    target.parent.mkdir(parents=True, exist_ok=True)
    rows = pa.table(columns)
    pq.write_table(rows, target)
    return TableFile(path, target.stat().st_size, rows.num_rows)


@pytest.fixture
def table(tmp_path: Path) -> ManifestTable:
    return ManifestTable(tmp_path / "table")


def commit(table: ManifestTable, *files: TableFile, batch: int, **more: object) -> None:
    given = {"schema": schema(a="long"), "transaction": Transaction("q", batch)} | more
    table.commit(Commit(added=files, **given))  # type: ignore[arg-type]


def test_a_table_that_is_not_there(table: ManifestTable) -> None:
    assert table.schema() is None
    assert table.last_batch("q") is None
    assert not table.files()
    assert table.compact(100).files_before == 0


def test_commits_add_files_and_remember_batches(table: ManifestTable) -> None:
    commit(table, TableFile("a.parquet", 1, 2), batch=0)
    commit(table, TableFile("b.parquet", 3, 4), batch=1, schema=schema(a="long", b="date"))
    assert table.files() == [TableFile("a.parquet", 1, 2), TableFile("b.parquet", 3, 4)]
    assert table.last_batch("q") == 1
    assert table.last_batch("other") is None
    assert table.schema() == schema(a="long", b="date")


def test_rows_that_do_not_fit(table: ManifestTable) -> None:
    commit(table, batch=0)
    with pytest.raises(TableSchemaError):
        commit(table, batch=1, schema=schema(a="date"))
    with pytest.raises(ConfigurationError, match=r"partitioned by \[\], not by \['a'\]"):
        commit(table, batch=1, partition_by=["a"])


def test_an_overwrite_takes_the_others_out(table: ManifestTable) -> None:
    commit(table, write(table, "a.parquet", a=[1]), batch=0)
    new = write(table, "b.parquet", a=["x"])
    commit(table, new, batch=1, schema=schema(a="string"), is_overwrite=True)
    assert table.files() == [new]
    assert not (table.path / "a.parquet").exists()
    assert table.schema() == schema(a="string")


def test_old_commits_go_and_the_state_stays(table: ManifestTable) -> None:
    count = 3 * WHOLE_EVERY + 2
    for batch in range(count):
        commit(table, TableFile(f"{batch}.parquet", 1, 1), batch=batch)
    assert len(table.files()) == count
    assert table.last_batch("q") == count - 1
    assert len(list((table.path / "_manifest").iterdir())) <= 2 * WHOLE_EVERY + 2


def test_another_writer_came_first(table: ManifestTable) -> None:
    commit(table, batch=0)
    record = table.state().next_record(
        added=[], removed=[], schema=schema(), partition_by=[], transaction=None
    )
    commit(table, batch=1)
    assert not table._append(record)
    assert table.last_batch("q") == 1


def test_a_log_of_another_version(table: ManifestTable) -> None:
    (table.path / "_manifest").mkdir(parents=True)
    (table.path / "_manifest" / "00000000.json").write_text('{"version": 2, "files": []}')
    with pytest.raises(ConfigurationError, match="version 2"):
        table.state()


def test_small_files_become_one_with_all_columns(table: ManifestTable) -> None:
    files = [
        write(table, "d=1/a.parquet", a=[1, 2]),
        write(table, "d=1/b.parquet", a=[3], b=["x"]),
        write(table, "d=2/c.parquet", a=[4]),
    ]
    commit(table, *files, batch=0, schema=schema(a="long", b="string"), partition_by=["d"])
    result = table.compact(1 << 20)
    assert (result.files_before, result.files_after) == (2, 1)
    merged, alone = sorted(table.files(), key=lambda file: file.path)
    assert alone == files[2]
    assert merged.rows_count == 3
    assert pq.ParquetFile(table.path / merged.path).read().to_pylist() == [
        {"a": 1, "b": None},
        {"a": 2, "b": None},
        {"a": 3, "b": "x"},
    ]
    assert sorted(each.name for each in table.path.rglob("*.parquet")) == sorted(
        Path(each.path).name for each in (merged, alone)
    )
    assert table.last_batch("q") == 0
