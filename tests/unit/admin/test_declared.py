"""Parameters and bodies as handlers read them, and that they read no others."""

from __future__ import annotations

import re
from enum import Enum
from pathlib import Path
from typing import Any, Literal
from urllib.parse import parse_qsl

import pytest
from msgspec import Struct, field

from pulsar_py.admin.declared import (
    BOOLEAN,
    LONG,
    NUMBER,
    PROPERTIES,
    TEXTS,
    Body,
    Flag,
    Int,
    Long,
    Number,
    PathNumber,
    RawBody,
    Text,
    Texts,
    json_of,
)
from pulsar_py.admin.http_messages import PathValueError, Request, UnreadableBodyError

ADMIN = Path(__file__).parents[3] / "pulsar_py" / "admin"


class Colour(Enum):
    RED = "red"


class Inner(Struct, frozen=True):
    size: Int = 3


class Outer(Struct, frozen=True, rename="camel"):
    max_size: Long = 7
    is_open: bool = False
    rate: float = 0.5
    name: str | None = None
    names: list[str] = field(default_factory=list)
    colour: Colour | None = None
    inner: Inner = field(default_factory=Inner)
    by_name: dict[str, str | None] = field(default_factory=dict)


class Strict(Struct, frozen=True, forbid_unknown_fields=True):
    size: Int = 3


def at(query: str = "", **path: str) -> Request:
    values = dict(reversed(parse_qsl(query, keep_blank_values=True)))
    return Request(method="GET", raw_path="/", path=path, query=values, raw_query=query)


def with_body(body: bytes) -> Request:
    return Request(method="POST", raw_path="/", body=body)


@pytest.mark.parametrize(
    ("query", "flag"),
    [("f=true", True), ("f=TRUE", True), ("f=1", False), ("f=", False), ("", False)],
)
def test_flags_are_true_only_when_they_say_true(query: str, *, flag: bool) -> None:
    assert Flag("f").of(at(query)) is flag


def test_parameters_have_defaults() -> None:
    assert Flag("f", default=True).of(at())
    assert Text("t").of(at()) is None
    assert Text("t", default="x").of(at()) == "x"
    assert Number("n").of(at()) is None
    assert Texts("t").of(at()) == []


def test_parameters_are_read() -> None:
    request = at("t=b&n=-3&t=c", number="9")
    assert Text("t", ("a", "b")).of(request) == "b"
    assert Texts("t").of(request) == ["b", "c"]
    assert Number("n").of(request) == -3
    assert PathNumber("number").of(request) == 9


@pytest.mark.parametrize("text", ["few", "", "1_000", "٣", "1.5", str(2**31), "9" * 5000])
def test_what_is_no_number_of_its_size_is_no_path(text: str) -> None:
    for number in (Number("n"), PathNumber("n")):
        with pytest.raises(PathValueError):
            number.of(Request(method="GET", raw_path="/", path={"n": text}, query={"n": text}))


def test_long_numbers_have_64_bits() -> None:
    assert PathNumber("n", 64).of(at(n=str(-(2**63)))) == -(2**63)


def test_what_is_none_of_the_choices_is_no_path() -> None:
    with pytest.raises(PathValueError):
        Text("t", ("a", "b")).of(at("t=c"))


@pytest.mark.parametrize(
    ("body", "text", "expected"),
    [
        (NUMBER, b"", None),
        (NUMBER, b"null", None),
        (NUMBER, b'"7"', 7),
        (LONG, b"9223372036854775807", 2**63 - 1),
        (BOOLEAN, b'"true"', True),
        (TEXTS, b'["a", 1, null]', ["a", "1", ""]),
        (PROPERTIES, b'{"a": 1, "b": null}', {"a": "1", "b": ""}),
        (Body(Outer), b"{}", Outer()),
        (
            Body(Outer),
            b'{"maxSize": "5", "isOpen": "true", "rate": 2, "name": 8, "names": ["x"], "more": []}',
            Outer(max_size=5, is_open=True, rate=2.0, name="8", names=["x"]),
        ),
        (
            Body(Outer),
            b'{"colour": "red", "inner": {"size": 1}, "byName": {"a": null}}',
            Outer(colour="red", inner=Inner(1), by_name={"a": None}),  # type: ignore[arg-type]
        ),
        (Body(list[Inner]), b'[{"size": 1}, null]', [Inner(1), None]),
        (Body(Literal["a", "b"] | Inner), b'"b"', "b"),  # type: ignore[arg-type]
        (Body(Literal["a", "b"] | Inner), b"{}", Inner()),  # type: ignore[arg-type]
        (Body(dict[str, Any]), b'{"a": [1]}', {"a": [1]}),
    ],
)
def test_bodies_are_read_as_their_type(body: Body[Any], text: bytes, expected: object) -> None:
    assert body.of(with_body(text)) == expected


@pytest.mark.parametrize(
    ("body", "text", "reason"),
    [
        (NUMBER, b"2147483648", "more than 32 bits"),
        (LONG, b"9223372036854775808", "64 bits"),
        (BOOLEAN, b"[]", "true or false"),
        (TEXTS, b"{}", "expected a list"),
        (Body(Outer), b"[]", "expected an object"),
        (Body(Outer), b'{"maxSize": "x"}', "maxSize: 'x' is not a whole number"),
        (Body(Outer), b'{"inner": {"size": []}}', "size"),
        (Body(Outer), b'{"colour": "blue"}', "is not one of red"),
        (Body(Strict), b'{"sise": 1}', "sise"),
        (Body(Literal["a"] | Inner, "place"), b'"z"', "place: 'z' is not one of a"),  # type: ignore[arg-type]
        (Body(Literal["a"] | Inner), b'{"size": "x"}', "size"),  # type: ignore[arg-type]
        (NUMBER, b"[", "JSON|line|expected|Input"),
    ],
)
def test_what_can_not_be_meant_is_unreadable(body: Body[Any], text: bytes, reason: str) -> None:
    with pytest.raises(UnreadableBodyError, match=reason):
        body.of(with_body(text))


@pytest.mark.parametrize("body", [NUMBER, BOOLEAN, Body(Outer)])
def test_a_required_body_has_to_be_there(body: Body[Any]) -> None:
    with pytest.raises(UnreadableBodyError, match="is required"):
        body.required(with_body(b" "))


def test_a_raw_body_is_text() -> None:
    assert RawBody(("text/plain",)).of(with_body(b"a\xff")) == "a\ufffd"


def test_a_struct_is_json_by_the_names_of_its_fields() -> None:
    assert json_of(Outer(max_size=1))["maxSize"] == 1


def test_only_what_the_route_declares_is_read() -> None:
    force, body = Flag("force"), Body(int)
    request = Request(method="POST", raw_path="/", body=b"1", declared=(force, body))
    assert not force.of(request)
    assert body.of(request) == 1
    for undeclared in (Flag("other"), Texts("other"), Body(int), RawBody(())):
        with pytest.raises(AssertionError, match="not declared"):
            undeclared.of(request)


def test_no_resource_reads_the_query_or_the_body_itself() -> None:
    own = {"declared.py", "http_messages.py", "app.py", "http_server.py"}
    pattern = re.compile(r"request\.(query|raw_query|body|json\(|all_values)")
    found = {
        str(path.relative_to(ADMIN))
        for path in ADMIN.rglob("*.py")
        if path.name not in own and pattern.search(path.read_text("utf-8"))
    }
    assert not found
