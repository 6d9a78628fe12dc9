"""Calls as values: paths, queries, bodies, answers."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from typing import ClassVar

import pytest

from pulsar_py.admin_client import topics
from pulsar_py.admin_client.call import (
    NO_BODY,
    JsonRecord,
    Reply,
    as_names,
    as_records,
    as_text,
    call,
    encoded,
    full_topic,
    get,
    namespace_path,
    nothing,
    topic_path,
)
from pulsar_py.common.errors import InvalidNamespaceNameError, InvalidTopicNameError


class Sample(JsonRecord):
    first_number: int = 1
    a_text: str | None = None


def reply(value: object, body: bytes = b"") -> Reply:
    return Reply(200, {}, body, lambda: value)


@pytest.mark.parametrize(
    ("topic", "path"),
    [
        ("x", "persistent/public/default/x"),
        ("non-persistent://t/n/x", "non-persistent/t/n/x"),
        ("t/n/a b", "persistent/t/n/a%20b"),
        ("persistent://t/n/a?b+%", "persistent/t/n/a%3Fb%2B%25"),
    ],
)
def test_names_of_topics_are_encoded_whole(topic: str, path: str) -> None:
    assert topic_path(topic) == path


def test_names_are_checked_before_anything_is_sent() -> None:
    with pytest.raises(InvalidTopicNameError):
        topics.stats("persistent://t")
    with pytest.raises(InvalidNamespaceNameError):
        namespace_path("t/n/x")
    assert full_topic("x") == "persistent://public/default/x"


def test_a_query_leaves_out_what_is_none_and_writes_flags_as_json() -> None:
    found = get("x", as_text, flag=True, text="a b&c", number=0, absent=None)
    assert found.path == "/admin/v2/x?flag=true&text=a+b%26c&number=0"
    assert call("GET", "/lookup/v2/x", nothing).path == "/lookup/v2/x"


def test_bodies() -> None:
    assert encoded(NO_BODY) == b""
    assert encoded(None) == b"null"
    assert encoded(b"raw") == b"raw"
    assert encoded(call("PUT", "x", nothing, Sample(a_text="t")).body) == (
        b'{"firstNumber": 1, "aText": "t"}'
    )


def test_records_take_what_they_know() -> None:
    assert Sample.of({"firstNumber": 2, "other": 3}) == Sample(first_number=2)
    assert Sample().to_json() == {"firstNumber": 1}
    assert as_records(Sample)(reply({"k": {}})) == {"k": Sample()}


class Required(JsonRecord):
    NAMES: ClassVar[Mapping[str, str]] = {"a_name": "aNAME"}

    a_name: str
    number: int = 1


def test_records_are_values() -> None:
    value = Required(a_name="x")
    assert (value.a_name, value.number) == ("x", 1)
    assert value == Required(a_name="x", number=1)
    assert hash(value) == hash(Required(a_name="x"))
    assert value not in {Required(a_name="y"), Sample(), "x"}
    assert repr(value) == "Required(a_name='x', number=1)"
    assert pickle.loads(pickle.dumps(value)) == value
    assert Required.of(value.to_json()) == value
    assert Required.FIELDS == ("a_name", "number")


def test_records_refuse_what_they_have_no_field_for_and_changes() -> None:
    with pytest.raises(TypeError, match="Required needs 'a_name'"):
        Required.of({"number": 2})
    with pytest.raises(TypeError, match="Sample has no field 'other'"):
        Sample(other=1)  # type: ignore[call-arg]  # what is tested
    value = Sample()
    with pytest.raises(AttributeError, match="first_number"):
        setattr(value, "first_number", 2)  # noqa: B010 - a type checker refuses it
    with pytest.raises(AttributeError, match="first_number"):
        delattr(value, "first_number")
    assert value.first_number == 1


def test_answers() -> None:
    assert as_names(reply(["b", "a"])) == ["b", "a"]
    assert as_names(reply(None)) == []
    assert as_text(reply(None, b"ok")) == "ok"
    nothing(reply(None))
