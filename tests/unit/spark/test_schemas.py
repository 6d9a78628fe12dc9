"""Values of messages as columns."""

from __future__ import annotations

from pulsar_py.spark.schemas import RawValues
from tests.unit.spark.message_parts import plain


def test_raw_values_are_the_payload_and_tombstones_are_null() -> None:
    values = RawValues()
    messages = [plain(b"a"), plain(b"", null_value=True)]
    assert values.build(messages, frozenset({"value"})).arrays["value"].to_pylist() == [b"a", None]
    assert values.build(messages, frozenset()) == ({}, {})
