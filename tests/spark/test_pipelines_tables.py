"""Tables that several write, and whose columns grow within; without a broker."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyarrow")

from pulsar_py.pipeline import lake
from pulsar_py.pipeline.lake import LakeSettings, LakeWriter, read_table
from pulsar_py.pipeline.tables import TableConflictError, Target
from pulsar_py.pipeline.watch import Watch

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
