from __future__ import annotations

import pytest

from pulsar_py.schema import GenericRecord

RECORD = GenericRecord({"a": 1, "b": [GenericRecord({"c": 2})], "d": {"e": GenericRecord({})}})


def test_it_is_a_mapping_of_its_fields() -> None:
    assert RECORD["a"] == 1
    assert [*RECORD] == ["a", "b", "d"]
    assert len(RECORD) == 3
    assert RECORD.fields() == ("a", "b", "d")
    with pytest.raises(KeyError):
        RECORD["x"]


def test_a_field_that_is_not_there_is_none() -> None:
    assert RECORD.field("a") == 1
    assert RECORD.field("x") is None


def test_it_becomes_dicts_all_the_way_down() -> None:
    assert RECORD.to_dict() == {"a": 1, "b": [{"c": 2}], "d": {"e": {}}}


def test_it_equals_what_has_the_same_items() -> None:
    assert GenericRecord({"a": 1}) == GenericRecord({"a": 1}) == {"a": 1}
    assert GenericRecord({"a": 1}) != {"a": 2}
    assert GenericRecord({"a": 1}) != 5
    assert {"b": [GenericRecord({"c": 2})]} == {"b": [{"c": 2}]}


def test_it_says_what_it_holds() -> None:
    assert repr(GenericRecord({"a": 1})) == "GenericRecord({'a': 1})"
