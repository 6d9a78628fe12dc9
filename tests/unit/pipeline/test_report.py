"""SQL of a report; tests/spark/test_pipelines.py makes one."""

from __future__ import annotations

from pulsar_py.common.position import Position
from pulsar_py.pipeline.report import behind_sql, lateness_sql


def test_what_lies_behind_a_position() -> None:
    sql = behind_sql({"it's": Position(7, 3), "u": Position(8, -1)})
    assert sql.count(" or (`__topic`") == 1
    assert "`__topic` = 'it\\'s' and (`__ledgerId` > 7" in sql
    assert "`__entryId` > 3" in sql


def test_classes_of_lateness_begin_with_the_latest() -> None:
    sql = lateness_sql()
    assert sql.index("86400000") < sql.index(">= 0 then 0")
    assert sql.endswith("else -1 end")
