"""Decoded values in the terms of JSON."""

from __future__ import annotations

import json
import math
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

import pytest

from pulsar_py.proto.PulsarApi_pb2 import MessageIdData
from pulsar_py.schema.generic_record import GenericRecord
from pulsar_py.schema.key_value_schema import KeyValue
from pulsar_py.schema.plain_values import plain_bytes, plain_value


class Color(Enum):
    RED = 1


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (None, None),
        (True, True),
        (2**63, 2**63),
        ("tëxt", "tëxt"),
        (1.5, 1.5),
        (math.nan, "NaN"),
        (-math.inf, "-Infinity"),
        (math.inf, "Infinity"),
        (b"line\n", "line\n"),
        (b"\x00\xff", {"base64": "AP8="}),
        (b"\x1b[2J", {"base64": "G1sySg=="}),
        (memoryview(b"ab"), "ab"),
        (KeyValue(1, None), {"key": 1, "value": None}),
        ({1: b"x", b"k": [1]}, {"1": "x", "k": [1]}),
        ((1, 2), [1, 2]),
        (date(2026, 1, 2), "2026-01-02"),
        (time(3, 4, 5), "03:04:05"),
        (datetime(2026, 1, 2, 3, tzinfo=UTC), "2026-01-02T03:00:00+00:00"),
        (Decimal("1.10"), "1.10"),
        (timedelta(seconds=90), "0:01:30"),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (Color.RED, "RED"),
        (GenericRecord({"a": GenericRecord({"b": b"\x01"})}), {"a": {"b": {"base64": "AQ=="}}}),
        (MessageIdData(ledgerId=1, entryId=2), {"ledgerId": "1", "entryId": "2"}),
    ],
)
def test_each_kind_has_a_form(value: Any, plain: Any) -> None:
    assert plain_value(value) == plain
    json.dumps(plain_value(value), allow_nan=False)


def test_what_is_unknown_is_described_and_not_refused() -> None:
    class Strange:
        def __repr__(self) -> str:
            return "x" * 1000

    assert plain_value([Strange()]) == ["x" * 200]


def test_control_characters_are_no_text() -> None:
    assert plain_bytes("a\u202eb".encode()) == {"base64": "YeKArmI="}  # it would turn what follows
