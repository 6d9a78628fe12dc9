"""Tables that several write, and whose columns grow within; without a broker."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyarrow")

from pulsar_py.pipeline import lake
from pulsar_py.pipeline.lake import LakeSettings, LakeWriter, read_table
from pulsar_py.pipeline.running.watch import Watch
from pulsar_py.pipeline.tables import Target
from pulsar_py.pipeline.tables.schemas import TableSchemaError
from pulsar_py.pipeline.tables.table import TableConflictError, Transaction

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

both_formats = pytest.mark.parametrize("kind", ["parquet", "delta"])


def writer_of(target: Target) -> LakeWriter:
    return LakeWriter(LakeSettings(target=target), Watch())


# --- two writers ---------------------------------------------------------------------------------


def pairs(spark: SparkSession, value: str) -> DataFrame:
    return spark.range(10).selectExpr("id as key", f"'{value}' as value")


def values(spark: SparkSession, target: Target) -> list[str]:
    """The value of each key, in their order."""
    rows = read_table(spark, target).orderBy("key").collect()
    assert [row.key for row in rows] == list(range(10))
    return sorted({row.value for row in rows})


@both_formats
def test_of_two_that_replace_a_table_at_once_one_fails(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    target = Target.parse(f"{kind}:{tmp_path / 'table'}")
    one, other = writer_of(target), writer_of(target)
    own, others = one.next_transaction("compact"), other.next_transaction("compact")
    write_files = lake.write_files

    def write_and_let_the_other_go_first(*args: Any, **more: Any) -> Any:
        files = write_files(*args, **more)
        monkeypatch.undo()
        other.replace(pairs(spark, "other"), others)
        return files

    monkeypatch.setattr(lake, "write_files", write_and_let_the_other_go_first)
    with pytest.raises(TableConflictError, match=f"{target}: another compact replaced the table"):
        one.replace(pairs(spark, "own"), own)
    assert values(spark, target) == ["other"]
    assert not list((target.path / "_staging").glob("*"))
    one.replace(pairs(spark, "own"), one.next_transaction("compact"))
    assert values(spark, target) == ["own"]
    with pytest.raises(TableConflictError):
        other.replace(pairs(spark, "late"), own)
    assert values(spark, target) == ["own"]


# --- records that grow ---------------------------------------------------------------------------


@both_formats
def test_records_in_arrays_and_maps_grow(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    target = Target.parse(f"{kind}:{tmp_path / 'table'}")
    writer = writer_of(target)
    # Columns of Delta tables stay as narrow as they are.
    wide = "bigint" if kind == "parquet" else "int"
    old = "struct<a: int>"
    new = f"struct<n: string, a: {wide}, in: array<struct<b: int>>>"
    newest = f"struct<a: {wide}, in: array<struct<b: int, c: date>>>"
    for batch, (record, row) in enumerate(
        [
            (old, '{"a": 1}'),
            (new, '{"n": "x", "a": 2, "in": [{"b": 1}]}'),
            (newest, '{"a": 3, "in": [{"b": 2, "c": "2026-01-31"}]}'),
            (old, '{"a": 4}'),
        ]
    ):
        text = f'{{"xs": [{row}, null], "m": {{"k": {row}}}, "s": {row}}}'
        columns = f"xs array<{record}>, m map<string, {record}>, s {record}"
        parsed = spark.createDataFrame([(text,)], "t string").selectExpr(
            f"inline(array(from_json(t, '{columns}')))"
        )
        assert writer.append(parsed, Transaction("q", batch)) == 1

    def found() -> list[Any]:
        rows = read_table(spark, target).orderBy("s.a").collect()
        assert [row.xs for row in rows] == [[row.s, None] for row in rows]
        assert [row.m for row in rows] == [{"k": row.s} for row in rows]
        return [row.s for row in rows]

    before = found()
    assert [(row.a, row.n) for row in before] == [(1, None), (2, "x"), (3, None), (4, None)]
    assert [row["in"] and [tuple(each) for each in row["in"]] for row in before] == [
        None,
        [(1, None)],
        [(2, date(2026, 1, 31))],
        None,
    ]
    writer.compact()
    assert found() == before
    text_rows = spark.range(1).selectExpr("array(named_struct('a', 'x')) as xs")
    with pytest.raises(TableSchemaError, match=r"column 'xs.element.a' is .* and string in the"):
        writer.append(text_rows, Transaction("q", 9))
