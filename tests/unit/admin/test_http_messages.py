"""How answers look."""

from __future__ import annotations

import asyncio
import json

import pytest

from pulsar_py.admin.http_messages import (
    EMPTY,
    Request,
    UnreadableBodyError,
    encoded_in_turns,
    json_response,
    optional_json_response,
    page_response,
    reason_response,
    text_response,
)
from pulsar_py.admin.json_text import MAX_PIECE_UNITS


def test_json_is_compact_without_nulls_and_in_utf8() -> None:
    response = json_response({"a": [{"b": None, "c": "ä"}], "d": None})
    assert response.body == '{"a":[{"c":"ä"}]}'.encode()
    assert response.content_type == "application/json"


async def test_a_large_answer_is_encoded_in_turns() -> None:
    names = [f"topic {index}" for index in range(3 * MAX_PIECE_UNITS)]
    response = json_response(names, 201)
    assert response.body == b""
    turns = 0

    def on_turn() -> None:
        nonlocal turns
        turns += 1
        asyncio.get_running_loop().call_soon(on_turn)

    on_turn()
    encoded = await encoded_in_turns(response)
    assert turns >= 3
    assert json.loads(encoded.body) == names
    assert (encoded.status, encoded.content_type) == (201, "application/json")
    small = json_response(["a"])
    assert await encoded_in_turns(small) is small


def test_the_cluster_list_is_what_test_containers_compare_with() -> None:
    assert json_response(["standalone"]).body == b'["standalone"]'


def test_what_is_not_set_is_200_without_a_body() -> None:
    assert optional_json_response(None) is EMPTY
    assert optional_json_response(0).body == b"0"


def test_an_error_carries_its_reason() -> None:
    response = reason_response(404, "Topic a not found")
    assert (response.status, json.loads(response.body)) == (404, {"reason": "Topic a not found"})


def test_text_goes_under_the_content_type_of_json() -> None:
    assert text_response("ok").content_type == "application/json"


def test_pages_are_html() -> None:
    assert page_response(404).content_type.startswith("text/html")


def request(body: bytes) -> Request:
    return Request(method="PUT", raw_path="/", body=body)


@pytest.mark.parametrize(("body", "value"), [(b"", None), (b" \n", None), (b"null", None)])
def test_an_empty_body_and_null_are_none(body: bytes, value: object) -> None:
    assert request(body).json() is value


def test_what_is_no_json_is_unreadable() -> None:
    with pytest.raises(UnreadableBodyError):
        request(b"{").json()


def test_a_request_that_another_broker_sent_here_says_so() -> None:
    for query, is_chosen in (({}, False), ({"authoritative": "false"}, False)):
        assert Request(method="GET", raw_path="/", query=query).is_authoritative is is_chosen
    assert Request(method="GET", raw_path="/", query={"authoritative": "true"}).is_authoritative
