"""The log of `parquet:` tables."""

# ruff: noqa: E402 - imports stand after what may skip them
from __future__ import annotations

from collections.abc import Callable, Sequence
from errno import ENOSPC
from pathlib import Path
from typing import Any

import pytest

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
pyarrow_dataset = pytest.importorskip("pyarrow.dataset")

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.pipeline.tables.attempts import clean
from pulsar_py.pipeline.tables.manifest import WHOLE_EVERY, ManifestTable
from pulsar_py.pipeline.tables.schemas import TableSchemaError
from pulsar_py.pipeline.tables.table import (
    STAGING,
    Commit,
    TableConflictError,
    TableFile,
    Transaction,
)
from tests.unit.pipeline.tables.test_schemas import schema


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


def test_a_full_disk_is_told_with_its_path_and_leaves_nothing(
    table: ManifestTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(table, batch=0)

    def write_a_part(path: Path, text: str) -> None:
        path.write_bytes(text[:9].encode())
        raise OSError(ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", write_a_part)
    with pytest.raises(
        OSError, match=r"No space left on device: '.*table/_manifest/00000001.json'"
    ):
        commit(table, batch=1)
    assert [each.name for each in (table.path / "_manifest").iterdir()] == ["00000000.json"]


def test_a_log_of_another_version(table: ManifestTable) -> None:
    (table.path / "_manifest").mkdir(parents=True)
    (table.path / "_manifest" / "00000000.json").write_text('{"version": 2, "files": []}')
    with pytest.raises(ConfigurationError, match="version 2"):
        table.state()


def test_records_that_grew_are_merged(table: ManifestTable) -> None:
    old = pa.struct([("a", pa.int32())])
    new = pa.struct([("n", pa.string()), ("a", pa.int64())])

    def both(kind: pa.DataType) -> dict[str, pa.DataType]:
        return {"xs": pa.list_(kind), "m": pa.map_(pa.string(), kind)}

    files = []
    for number, (kind, row) in enumerate([(old, {"a": 1}), (new, {"a": 2, "n": "x"})]):
        files.append(
            write(
                table,
                f"{number}.parquet",
                xs=pa.array([[row], None, []], both(kind)["xs"]),
                m=pa.array([[("k", row)], None, []], both(kind)["m"]),
            )
        )
    commit(table, *files, batch=0)
    assert table.compact(1 << 20).files_after == 1
    (merged,) = table.files()
    found = pq.ParquetFile(table.path / merged.path).read().to_pylist()
    assert [row["xs"] for row in found] == [
        [{"a": 1, "n": None}],
        None,
        [],
        [{"a": 2, "n": "x"}],
        None,
        [],
    ]
    assert [row["m"] for row in found][::3] == [
        [("k", {"a": 1, "n": None})],
        [("k", {"a": 2, "n": "x"})],
    ]


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


def test_a_batch_is_committed_once(table: ManifestTable) -> None:
    commit(table, TableFile("a.parquet", 1, 2), batch=3)
    again = Commit(
        added=[TableFile("b.parquet", 1, 2)],
        schema=schema(a="long"),
        transaction=Transaction("q", 3),
        is_overwrite=True,
    )
    assert not table.commit(again)
    assert table.files() == [TableFile("a.parquet", 1, 2)]


def test_what_a_crash_left_of_a_commit_goes_with_old_commits(table: ManifestTable) -> None:
    commit(table, batch=0)
    left = [table.path / "_manifest" / f"{number:08}-0a.tmp" for number in (1, 2 * WHOLE_EVERY)]
    for each in left:
        each.touch()
    for batch in range(1, 2 * WHOLE_EVERY + 1):
        commit(table, batch=batch)
    assert [each.exists() for each in left] == [False, True]


def test_a_commit_that_was_forgotten_is_made_anew(
    table: ManifestTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = Path.hardlink_to
    missing: list[Path] = []

    def forgotten_once(self: Path, target: Path) -> None:
        if not missing:
            missing.append(target)
            target.unlink()
        link(self, target)

    monkeypatch.setattr(Path, "hardlink_to", forgotten_once)
    commit(table, TableFile("a.parquet", 1, 2), batch=0)
    assert missing
    assert table.files() == [TableFile("a.parquet", 1, 2)]


def test_a_writer_that_stood_still_does_not_write_into_the_past(table: ManifestTable) -> None:
    commit(table, batch=0)
    record = table.state().next_record(
        added=[], removed=[], schema=schema(), partition_by=[], transaction=None
    )
    for batch in range(1, 3 * WHOLE_EVERY):
        commit(table, TableFile(f"{batch}.parquet", 1, 1), batch=batch)
    with pytest.raises(
        TableConflictError, match="148 commits of others were made while commit 1 was"
    ):
        table._append(record)
    assert len(table.files()) == 3 * WHOLE_EVERY - 1


# --- writers that come in between ----------------------------------------------------------------

ROWS = set(range(6))


class Interrupted(ManifestTable):
    """Another writer does something just before one of its steps."""

    def __init__(self, path: Path, step: str, other: Callable[[], object]) -> None:
        super().__init__(path)
        self._step: str | None = step
        self._other = other

    def _at(self, step: str) -> None:
        if step == self._step:
            self._step = None
            self._other()

    def _merge(self, group: Any, path: Path) -> None:
        self._at("merge")
        super()._merge(group, path)

    def _replace(self, sources: Any, merged: Any) -> bool:
        self._at("replace")
        return super()._replace(sources, merged)

    def _append(self, record: Any) -> bool:
        self._at("append")
        is_next = super()._append(record)
        self._at("delete")
        return is_next


@pytest.fixture
def filled(table: ManifestTable) -> ManifestTable:
    """Six rows in as many files of two partitions."""
    for batch in sorted(ROWS):
        file = write(table, f"d={batch % 2}/{batch}.parquet", a=[batch])
        commit(table, file, batch=batch, partition_by=["d"])
    return table


def rows(table: ManifestTable) -> list[int]:
    """What the log counts; nothing else is there."""
    counted = sorted(each.path for each in table.files())
    found = [each.relative_to(table.path) for each in table.path.rglob("*.parquet")]
    assert sorted(each.as_posix() for each in found) == counted
    assert not list((table.path / "_staging").glob("*"))
    values = [pq.ParquetFile(table.path / each).read()["a"].to_pylist() for each in counted]
    return sorted(value for each in values for value in each)


STEPS = ["merge", "replace", "append", "delete"]


@pytest.mark.parametrize("step", STEPS)
def test_two_merges_at_once(filled: ManifestTable, step: str) -> None:
    other = ManifestTable(filled.path)
    results = []
    results.append(
        Interrupted(filled.path, step, lambda: results.append(other.compact(1 << 20))).compact(
            1 << 20
        )
    )
    assert sorted(each.files_before for each in results) == [0, 6]
    assert rows(filled) == sorted(ROWS)
    assert len(filled.files()) == 2


@pytest.mark.parametrize("step", STEPS)
def test_a_batch_is_added_while_files_are_merged(filled: ManifestTable, step: str) -> None:
    def add() -> None:
        commit(filled, write(filled, "d=1/9.parquet", a=[9]), batch=9, partition_by=["d"])

    result = Interrupted(filled.path, step, add).compact(1 << 20)
    assert (result.files_before, result.files_after) == (6, 2)
    assert rows(filled) == [*sorted(ROWS), 9]
    assert filled.last_batch("q") == 9


@pytest.mark.parametrize("step", STEPS)
def test_a_table_is_overwritten_while_files_are_merged(filled: ManifestTable, step: str) -> None:
    def overwrite() -> None:
        file = write(filled, "d=1/9.parquet", a=[9])
        commit(filled, file, batch=9, partition_by=["d"], is_overwrite=True)

    Interrupted(filled.path, step, overwrite).compact(1 << 20)
    assert rows(filled) == [9]


@pytest.mark.parametrize("step", ["append", "delete"])
@pytest.mark.parametrize("is_overwrite", [False, True])
def test_files_are_merged_while_a_batch_is_committed(
    filled: ManifestTable, step: str, *, is_overwrite: bool
) -> None:
    other = ManifestTable(filled.path)
    writer = Interrupted(filled.path, step, lambda: other.compact(1 << 20))
    file = write(filled, "d=1/9.parquet", a=[9])
    commit(writer, file, batch=9, partition_by=["d"], is_overwrite=is_overwrite)
    assert rows(filled) == ([9] if is_overwrite else [*sorted(ROWS), 9])


@pytest.mark.parametrize("step", ["append", "delete"])
def test_one_batch_is_committed_by_two(filled: ManifestTable, step: str) -> None:
    def commit_as(table: ManifestTable, name: str) -> bool:
        return table.commit(
            Commit(
                added=[write(filled, f"d=1/{name}.parquet", a=[9])],
                schema=schema(a="long"),
                partition_by=["d"],
                transaction=Transaction("compact", 0),
                is_overwrite=True,
            )
        )

    done = []
    other = ManifestTable(filled.path)
    writer = Interrupted(filled.path, step, lambda: done.append(commit_as(other, "other")))
    done.append(commit_as(writer, "own"))
    assert sorted(done) == [False, True]
    assert [each.path for each in filled.files()] == [
        "d=1/other.parquet" if step == "append" else "d=1/own.parquet"
    ]


class KilledError(Exception):
    """Stands for the end of a process."""


def die() -> None:
    raise KilledError


@pytest.mark.parametrize("is_overwrite", [False, True])
def test_what_a_crash_left_behind_a_merge_goes_later(
    filled: ManifestTable, *, is_overwrite: bool
) -> None:
    with pytest.raises(KilledError):
        Interrupted(filled.path, "delete", die).compact(1 << 20)
    assert len(filled.files()) == 2, "it is in the log"
    if is_overwrite:
        commit(filled, batch=9, partition_by=["d"], is_overwrite=True)
    else:
        filled.compact(1 << 20)
    assert rows(filled) == ([] if is_overwrite else sorted(ROWS))


def test_what_a_crash_left_goes_before_the_log_forgets_it(filled: ManifestTable) -> None:
    with pytest.raises(KilledError):
        Interrupted(filled.path, "delete", die).compact(1 << 20)
    for batch in range(10, 10 + 2 * WHOLE_EVERY):
        commit(filled, batch=batch, partition_by=["d"])
    assert rows(filled) == sorted(ROWS)


@pytest.mark.parametrize("step", ["merge", "replace", "append"])
def test_a_merge_that_fails_leaves_the_table_as_it_is(filled: ManifestTable, step: str) -> None:
    with pytest.raises(KilledError):
        Interrupted(filled.path, step, die).compact(1 << 20)
    assert rows(filled) == sorted(ROWS)
    assert len(filled.files()) == 6


def test_a_file_that_counts_and_is_not_there(filled: ManifestTable) -> None:
    (filled.path / "d=1" / "3.parquet").unlink()
    with pytest.raises(FileNotFoundError, match=r"3\.parquet"):
        filled.compact(1 << 20)
    assert len(filled.files()) == 6


def rows_of_directory(table: ManifestTable) -> list[int]:
    """What an engine reads that is given the path alone."""
    found = pyarrow_dataset.dataset(table.path, format="parquet").to_table()
    return sorted(found["a"].to_pylist())


def test_who_reads_the_directory_alone_sees_the_rows_of_the_log_at_rest(
    table: ManifestTable,
) -> None:
    for batch in range(3):
        commit(table, write(table, f"p=1/{batch}.parquet", a=[batch, batch + 10]), batch=batch)
    whole = [0, 1, 2, 10, 11, 12]
    assert rows_of_directory(table) == whole
    assert table.compact(1 << 20).files_after == 1
    assert rows_of_directory(table) == whole
    commit(table, write(table, "p=1/new.parquet", a=[7]), batch=3, is_overwrite=True)
    assert rows_of_directory(table) == [7]


def test_what_a_dead_attempt_left_is_seen_in_the_directory_until_it_is_cleaned(
    table: ManifestTable,
) -> None:
    commit(table, write(table, "0.parquet", a=[0]), batch=0)
    staging = table.path / STAGING / "q-00000001-dead"
    staging.mkdir(parents=True)
    staging.with_name(f"{staging.name}.lock").touch()  # its process is gone: nobody holds it
    write(table, f"{STAGING}/{staging.name}/part-1.parquet", a=[2])
    write(table, f"{staging.name}-00000.parquet", a=[1])
    assert [each.path for each in table.files()] == ["0.parquet"]
    assert rows_of_directory(table) == [0, 1]  # what is being written is hidden, what is placed not
    clean(table)
    assert rows_of_directory(table) == [0]
