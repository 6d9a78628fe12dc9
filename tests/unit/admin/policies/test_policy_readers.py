"""Readers of policies and what they declare."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from pulsar_py.admin.declared import Body, Int, Number
from pulsar_py.admin.http_messages import Request
from pulsar_py.admin.policies.policy_readers import body_json, reading


class Size(Struct, frozen=True, rename="camel"):
    max_size: Int = 3


BODY = Body(Size)
LIMIT = Number("limit")


def request(body: bytes = b"", **query: str) -> Request:
    return Request(method="POST", raw_path="/", body=body, query=query)


def test_a_reader_is_its_function_and_takes_its_body() -> None:
    @reading(BODY)
    def size(request: Request) -> Any:
        return body_json(request, BODY)

    assert (size.takes, size.kind) == ((BODY,), Size)
    assert size(request(b'{"maxSize": 5}')) == {"maxSize": 5}
    assert size(request(b"{}")) == {"maxSize": 3}
    assert size(request()) is None


def test_a_reader_without_a_body_says_its_type() -> None:
    @reading(None, LIMIT, gives=int)
    def limit(request: Request) -> Any:
        return LIMIT.of(request)

    assert (limit.takes, limit.kind) == ((LIMIT,), int)
    assert limit(request(limit="5")) == 5
