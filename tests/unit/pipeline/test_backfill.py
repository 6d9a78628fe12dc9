"""Columns of messages, and the pace of rows; tests/spark/test_pipelines.py fills back."""

from __future__ import annotations

import pytest

pytest.importorskip("pyarrow")

from pulsar_py.common.loops.clock import SystemClock
from pulsar_py.pipeline.backfill import message_columns, pace_of


def test_a_table_that_was_no_topic_stays_as_it_is() -> None:
    assert message_columns(["a", "b"]) == ["`a`", "`b`"]


def test_what_messages_were_goes_along_as_properties() -> None:
    found = message_columns(["value", "__topic", "__messageId", "__messageProperties"])
    assert found[:2] == ["`value`", "`__messageId`"]
    assert "'original-message-id', base64(`__messageId`)" in found[2]
    assert "'original-topic', `__topic`" in found[2]
    assert "publish" not in found[2].split("map_concat")[1].split("map(")[-1]


def test_properties_stay_where_nothing_is_added() -> None:
    assert message_columns(["__messageProperties"]) == ["`__messageProperties`"]


def test_rows_wait_for_their_turn() -> None:
    pace = pace_of(100)
    began = SystemClock().monotonic_seconds()
    assert all(pace() for _ in range(6))
    assert SystemClock().monotonic_seconds() - began >= 0.05
