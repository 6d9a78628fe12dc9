"""What resources read out of requests."""

from __future__ import annotations

from typing import Any

import pytest

from pulsar_py.admin.http_messages import (
    HttpError,
    PathValueError,
    Request,
    UnreadableBodyError,
)
from pulsar_py.admin.resources.requests import (
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
    with pytest.raises(PathValueError):
        whole_number_in_path(at(n="few"), "n")


@pytest.mark.parametrize(
    ("read", "value", "expected"),
    [
        (read_int, None, None),
        (read_int, "10240", 10240),
        (read_int, 2.9, 2),
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
