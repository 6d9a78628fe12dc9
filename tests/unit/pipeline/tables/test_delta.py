"""Delta tables made of files that others wrote."""

# ruff: noqa: E402 - imports stand after what may skip them
from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
deltalake = pytest.importorskip("deltalake")

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.pipeline.tables.attempts import exclusively
from pulsar_py.pipeline.tables.delta import DeltaLakeTable
from pulsar_py.pipeline.tables.schemas import Schema, TableSchemaError
from pulsar_py.pipeline.tables.table import Commit, CompactionResult, TableFile, Transaction
from tests.unit.pipeline.tables.test_schemas import array, map_of, schema

PARTITIONED = schema(a="long", d="string")


@pytest.fixture
def table(tmp_path: Path) -> DeltaLakeTable:
    return DeltaLakeTable(tmp_path / "table")


def test_a_path_that_the_package_would_decode_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=f"looks for {tmp_path}/a b; "):
        DeltaLakeTable(tmp_path / "a%20b")
    DeltaLakeTable(tmp_path / "100% a b")


def write(table: DeltaLakeTable, path: str, **columns: Sequence[object]) -> TableFile:
    target = table.path / path
    target.parent.mkdir(parents=True, exist_ok=True)
    rows = pa.table(columns)
    pq.write_table(rows, target)
    return TableFile(path, target.stat().st_size, rows.num_rows)


def commit(
    table: DeltaLakeTable, file: TableFile, batch: int, columns: Schema, *, overwrite: bool = False
) -> bool:
    return table.commit(
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
    with pytest.raises(TableSchemaError, match="would become wider"):
        commit(table, write(table, "d=x/2.parquet", a=[1]), 1, PARTITIONED)


def test_records_grow_within_records_and_arrays(table: DeltaLakeTable) -> None:
    def commit_row(number: int, record: Schema, row: dict[str, object]) -> None:
        columns = schema(a="long", d="string", xs=array(record), s=record)
        file = write(table, f"d=x/{number}.parquet", a=[number], xs=[[row]], s=[row])
        commit(table, file, number, columns)

    old = schema(u="long")
    commit_row(0, old, {"u": 1})
    commit_row(1, schema(u="long", n=array(old)), {"u": 2, "n": [{"u": 3}]})
    commit_row(2, old, {"u": 4})
    expected = [{"u": 1, "n": None}, {"u": 2, "n": [{"u": 3}]}, {"u": 4, "n": None}]
    assert [each["xs"] for each in rows(table)] == [[each] for each in expected]
    assert table.compact(1 << 20).files_after == 1
    assert [each["s"] for each in rows(table)] == expected


def test_files_that_the_package_cannot_merge_stay(
    table: DeltaLakeTable, caplog: pytest.LogCaptureFixture
) -> None:
    def commit_row(number: int, *names: str) -> None:
        record = pa.struct([(name, pa.int64()) for name in names])
        cells = pa.array([[("k", dict.fromkeys(names, 1))]], pa.map_(pa.string(), record))
        columns = schema(a="long", d="string", m=map_of(schema(**dict.fromkeys(names, "long"))))
        commit(table, write(table, f"d=x/{number}.parquet", a=[number], m=cells), number, columns)

    commit_row(0, "u")
    commit_row(1, "u", "n")
    assert table.compact(1 << 20).files_after == 0
    assert "small files are not merged" in caplog.text
    assert len(table.files()) == 2


def test_types_within_that_do_not_fit(table: DeltaLakeTable) -> None:
    commit(table, write(table, "d=x/1.parquet", a=[1]), 0, schema(d="string", m=map_of("integer")))
    with pytest.raises(TableSchemaError, match=r"columns \['m.value'\] would become wider"):
        commit(table, write(table, "d=x/2.parquet", a=[1]), 1, schema(d="string", m=map_of("long")))


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


# --- writers that come in between ----------------------------------------------------------------


class Interrupted(DeltaLakeTable):
    """Another writer does something once it has seen the table."""

    def __init__(self, path: Path, other: Callable[[], object]) -> None:
        super().__init__(path)
        self._other: Callable[[], object] | None = other

    def _table(self) -> deltalake.DeltaTable | None:
        found = super()._table()
        if self._other is not None:
            other, self._other = self._other, None
            other()
        return found


@pytest.fixture
def filled(table: DeltaLakeTable) -> DeltaLakeTable:
    for batch in range(3):
        commit(table, write(table, f"d=x/{batch}.parquet", a=[batch]), batch, PARTITIONED)
    return table


def test_two_merges_at_once(filled: DeltaLakeTable) -> None:
    with exclusively(filled.path, "removing", waits=False):
        assert filled.compact(1 << 20).files_before == 0
    other = DeltaLakeTable(filled.path)
    assert Interrupted(filled.path, lambda: other.compact(1 << 20)).compact(1 << 20) == (
        CompactionResult(0, 0)
    )
    assert [row["a"] for row in rows(filled)] == [0, 1, 2]


def test_a_merge_while_the_table_is_overwritten(filled: DeltaLakeTable) -> None:
    merges = []
    other = DeltaLakeTable(filled.path)
    writer = Interrupted(filled.path, lambda: merges.append(other.compact(1 << 20)))
    commit(writer, write(filled, "d=x/9.parquet", a=[9]), 9, PARTITIONED, overwrite=True)
    assert merges == [CompactionResult(0, 0)]
    assert [row["a"] for row in rows(filled)] == [9]


@pytest.mark.parametrize("overwrite", [False, True])
def test_one_batch_is_committed_by_two(filled: DeltaLakeTable, *, overwrite: bool) -> None:
    def commit_of(name: str) -> Commit:
        return Commit(
            added=[write(filled, f"d=x/{name}.parquet", a=[9])],
            schema=PARTITIONED,
            partition_by=["d"],
            transaction=Transaction("q", 9),
            is_overwrite=overwrite,
        )

    done = []
    other = DeltaLakeTable(filled.path)
    # Without the lock of overwrites, which the first has: another machine's may be unknown to it.
    writer = Interrupted(filled.path, lambda: done.append(other._commit(commit_of("other"))))
    done.append(writer.commit(commit_of("own")))
    assert done == [True, False]
    assert [row["a"] for row in rows(filled)] == ([9] if overwrite else [0, 1, 2, 9])


def test_two_make_the_table(table: DeltaLakeTable) -> None:
    def make(as_table: DeltaLakeTable, number: int) -> None:
        commit(as_table, write(table, f"d=x/{number}.parquet", a=[number]), number, PARTITIONED)

    other = DeltaLakeTable(table.path)
    make(Interrupted(table.path, lambda: make(other, 1)), 2)
    assert [row["a"] for row in rows(table)] == [1, 2]


def test_files_of_old_versions_are_not_taken_for_left_ones(filled: DeltaLakeTable) -> None:
    filled.compact(1 << 20)
    assert filled.unlogged(["d=x/0.parquet", "d=x/7.parquet"]) == ["d=x/7.parquet"]
