"""The OpenAPI document says what routes declare."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import Struct

from pulsar_py.admin.api.openapi import document, refusals_of
from pulsar_py.admin.declared import Body, Flag, Int, PathNumber, Text
from pulsar_py.admin.http_messages import EMPTY, Request, Response
from pulsar_py.admin.router import Route, delete, get, put
from pulsar_py.server.security.actions import Action


class Size(Struct, frozen=True, rename="camel"):
    """How large a thing is."""

    max_size: Int = 3


async def serve(_: Request) -> Response:
    """Serve a thing."""
    return EMPTY


ROUTES = (
    get(
        "/admin/v2/{kind:a|b}/{name}/size/{number}",
        serve,
        Action.READ_BROKERS,
        PathNumber("number"),
        Flag("deep"),
        Text("mode", ("X", "Y"), "X"),
        answer=Size,
        may_be_empty=True,
    ),
    put("/admin/v2/{kind:a|b}/{name}/size/{number}", serve, "open to tests", Body(Size)),
    delete("/admin/v2/size", serve, "open to tests", answer="list[StandstillReason]"),
    Route("GET", "/below/{rest...}", serve, "open to tests"),
)


@pytest.fixture(scope="module")
def paths() -> Any:
    return document(ROUTES)["paths"]


def test_what_lies_below_a_path_is_left_out(paths: Any) -> None:
    assert sorted(paths) == ["/admin/v2/size", "/admin/v2/{kind}/{name}/size/{number}"]


def test_parameters_have_their_types(paths: Any) -> None:
    shown = paths["/admin/v2/{kind}/{name}/size/{number}"]["get"]["parameters"]
    types = {(each["in"], each["name"]): each["schema"] for each in shown}
    assert types == {
        ("path", "kind"): {"type": "string", "enum": ["a", "b"]},
        ("path", "name"): {"type": "string", "minLength": 1},
        ("path", "number"): {
            "type": "integer",
            "format": "int32",
            "minimum": -(2**31),
            "maximum": 2**31 - 1,
        },
        ("query", "deep"): {"type": "boolean", "default": False},
        ("query", "mode"): {"type": "string", "enum": ["X", "Y"], "default": "X"},
    }


def test_bodies_and_answers_have_their_types(paths: Any) -> None:
    size = {"$ref": "#/components/schemas/Size"}
    of_size = paths["/admin/v2/{kind}/{name}/size/{number}"]
    assert of_size["put"]["requestBody"] == {"content": {"application/json": {"schema": size}}}
    assert of_size["get"]["responses"]["200"]["content"] == {"application/json": {"schema": size}}
    assert "204" in of_size["get"]["responses"]
    assert "content" not in of_size["put"]["responses"]["204"]
    removed = paths["/admin/v2/size"]["delete"]["responses"]["200"]["content"]
    assert removed["application/json"]["schema"]["type"] == "array"


def test_refusals_are_declared(paths: Any) -> None:
    responses = paths["/admin/v2/size"]["delete"]["responses"]
    assert {str(int(each)) for each in refusals_of(ROUTES[2])} == set(responses) - {"200"}
    assert responses["409"] == {"$ref": "#/components/responses/409"}


def test_an_operation_says_what_it_does_and_which_right_it_needs(paths: Any) -> None:
    operation = paths["/admin/v2/{kind}/{name}/size/{number}"]["get"]
    assert operation["summary"] == "Serve a thing."
    assert operation["x-needs"] == "READ_BROKERS"
