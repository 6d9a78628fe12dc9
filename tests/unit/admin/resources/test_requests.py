"""What resources read out of requests."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from pulsar_py.admin.http_messages import (
    HttpError,
    PathValueError,
    Request,
    UnreadableBodyError,
)
from pulsar_py.admin.resources.requests import (
    LONG_BITS,
    namespace_of,
    position_fields,
    read_bool,
    read_int,
    read_object,
    read_properties,
    read_text,
    read_texts,
    required_bool,
    required_int,
    tenant_of,
    topic_of,
    whole_number_in_path,
)

read_long = partial(read_int, bits=LONG_BITS)


def at(**path: str) -> Request:
    return Request(method="GET", raw_path="/", path=path)


def test_names_are_read_from_the_path() -> None:
    request = at(domain="non-persistent", tenant="t", namespace="n", topic="a b")
    assert tenant_of(request) == "t"
    assert str(namespace_of(request)) == "t/n"
    assert str(topic_of(request)) == "non-persistent://t/n/a b"


@pytest.mark.parametrize(
    ("tenant", "namespace", "topic", "reason"),
    [
        ("t t", "n", "a", "Tenant name is not valid"),
        ("t", "n/m", "a", "Namespace name is not valid"),
        ("t", "n", "a/b", "Topic name is not valid"),
    ],
)
def test_names_have_to_be_valid(tenant: str, namespace: str, topic: str, reason: str) -> None:
    with pytest.raises(HttpError, match=reason) as raised:
        topic_of(at(domain="persistent", tenant=tenant, namespace=namespace, topic=topic))
    assert raised.value.status == 412


def test_numbers_in_the_path_are_whole() -> None:
    assert whole_number_in_path(at(n="-3"), "n") == -3
    assert whole_number_in_path(at(n=str(2**31 - 1)), "n") == 2**31 - 1
    assert whole_number_in_path(at(n=str(-(2**63))), "n", bits=LONG_BITS) == -(2**63)


@pytest.mark.parametrize("text", ["few", "", "1_000", "٣", "1.5", str(2**31), "9" * 5000])
def test_what_is_no_number_of_its_field_is_no_path(text: str) -> None:
    with pytest.raises(PathValueError):
        whole_number_in_path(at(n=text), "n")


@pytest.mark.parametrize(
    ("read", "value", "expected"),
    [
        (read_int, None, None),
        (read_int, "10240", 10240),
        (read_int, 2.9, 2),
        (read_int, " -7 ", -7),
        (read_int, 2**31 - 1, 2**31 - 1),
        (read_int, -(2**31), -(2**31)),
        (read_long, 2**63 - 1, 2**63 - 1),
        (read_long, str(-(2**63)), -(2**63)),
        (read_bool, None, None),
        (read_bool, "TRUE", True),
        (read_text, 5, "5"),
        (read_text, False, "false"),
        (read_texts, ["a", 1], ["a", "1"]),
        (read_object, {"a": 1}, {"a": 1}),
        (read_properties, {"a": 1, "b": "x"}, {"a": "1", "b": "x"}),
    ],
)
def test_json_is_read_leniently(read: Any, value: Any, expected: Any) -> None:
    assert read(value) == expected


@pytest.mark.parametrize(
    ("read", "value"),
    [
        (read_int, "x"),
        (read_int, "1_000"),
        (read_int, 2**31),
        (read_int, -(2**31) - 1),
        (read_int, str(2**31)),
        (read_int, "9" * 5000),
        (read_int, 1e300),
        (read_long, 2**63),
        (read_long, 1e19),
        (read_int, True),
        (read_int, []),
        (read_bool, 1),
        (read_bool, "yes"),
        (read_text, {}),
        (read_texts, "a"),
        (read_texts, [[]]),
        (read_object, []),
        (read_properties, {"a": {}}),
    ],
)
def test_what_can_not_be_meant_is_unreadable(read: Any, value: Any) -> None:
    with pytest.raises(UnreadableBodyError):
        read(value)


@pytest.mark.parametrize("read", [required_int, required_bool])
def test_a_required_scalar_has_to_be_there(read: Any) -> None:
    with pytest.raises(UnreadableBodyError):
        read(Request(method="POST", raw_path="/"))


def test_positions_are_two_numbers() -> None:
    assert position_fields({"ledgerId": "3", "entryId": 4}) == (3, 4)
    assert position_fields({}) == (0, 0)
    assert position_fields({"ledgerId": 2**63 - 1, "entryId": -1}) == (2**63 - 1, -1)
