"""Paths find their routes."""

from __future__ import annotations

import pytest

from pulsar_py.admin.http_messages import NO_CONTENT, Request, Response
from pulsar_py.admin.router import (
    BadPathError,
    Match,
    MethodNotAllowed,
    Router,
    delete,
    get,
    post,
    put,
)

TOPIC = "/admin/v2/{domain:persistent|non-persistent}/{tenant}/{namespace}/{topic}"
NAMESPACE = "/admin/v2/namespaces/{tenant}/{namespace}"


FREE = "a test asks no right"


async def first(_: Request) -> Response:
    return NO_CONTENT


async def second(_: Request) -> Response:
    return NO_CONTENT


def router() -> Router:
    return Router(
        [
            get("/admin/v2/clusters", first, FREE),
            get(TOPIC + "/stats", first, FREE),
            put(TOPIC, first, FREE),
            delete(TOPIC, second, FREE),
            get(NAMESPACE, first, FREE),
            get(NAMESPACE + "/topics", first, FREE),
            post(NAMESPACE + "/encryptionRequired", first, FREE),
            delete(NAMESPACE + "/{bundle}", second, FREE),
        ]
    )


def found(method: str, path: str) -> Match:
    match = router().find(method, path)
    assert isinstance(match, Match)
    return match


def test_parameters_are_decoded_after_the_path_is_split() -> None:
    match = found("GET", "/admin/v2/persistent/t/n/a%2Fb%20c/stats")
    assert match.parameters == {
        "domain": "persistent",
        "tenant": "t",
        "namespace": "n",
        "topic": "a/b c",
    }


def test_a_literal_plus_is_a_space() -> None:
    assert found("PUT", "/admin/v2/persistent/t/n/a+b%2B").parameters["topic"] == "a b+"


def test_utf8_is_decoded() -> None:
    assert found("PUT", "/admin/v2/persistent/t/n/%C3%A4").parameters["topic"] == "ä"


def test_a_parameter_with_choices_takes_only_these() -> None:
    assert found("PUT", "/admin/v2/non-persistent/t/n/a").parameters["domain"] == "non-persistent"
    assert router().find("PUT", "/admin/v2/temporary/t/n/a") is None


@pytest.mark.parametrize("path", ["/admin/v2/clusters", "/admin/v2/clusters/"])
def test_one_slash_at_the_end_is_fine(path: str) -> None:
    assert isinstance(router().find("GET", path), Match)


@pytest.mark.parametrize(
    "path",
    ["/", "/admin/v2//clusters", "/admin/v2/clusters//", "/admin/v2/persistent/t//a/stats"],
)
def test_empty_segments_are_not_found(path: str) -> None:
    assert router().find("GET", path) is None


@pytest.mark.parametrize("path", ["/admin/v2/persistent/t/n/a%zz", "/%", "/%4", "/t/a%00b"])
def test_a_bad_percent_is_an_error(path: str) -> None:
    with pytest.raises(BadPathError):
        router().find("GET", path)


def test_a_missing_method_names_those_that_are_there() -> None:
    assert router().find("POST", "/admin/v2/persistent/t/n/a") == MethodNotAllowed(
        ("DELETE", "OPTIONS", "PUT")
    )


def test_head_is_get() -> None:
    assert found("HEAD", "/admin/v2/clusters").route.handler is first


def test_literals_win_over_parameters() -> None:
    assert found("GET", "/admin/v2/namespaces/t/n/topics").route.handler is first


def test_a_literal_without_the_method_gives_way_to_a_parameter_that_has_it() -> None:
    match = found("DELETE", "/admin/v2/namespaces/t/n/encryptionRequired")
    assert match.route.handler is second
    assert match.parameters["bundle"] == "encryptionRequired"


def test_the_same_route_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="two routes for GET"):
        Router([get("/a/{b}", first, FREE), get("/a/{c}", first, FREE)])


def test_a_route_without_an_action_and_without_a_reason_does_not_build() -> None:
    with pytest.raises(TypeError):
        get("/a", first)  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="PUT /a"):
        put("/a", first, "")


async def _nothing(request: Request) -> Response:
    return Response()


def test_a_rest_takes_what_no_other_route_takes() -> None:
    router = Router([get("/a/{rest...}", _nothing, "free"), get("/a/b/{c}", _nothing, "free")])
    for path, template in (
        ("/a/x/y/z", "/a/{rest...}"),
        ("/a/b/x", "/a/b/{c}"),
        ("/a/b/x/y", "/a/{rest...}"),
    ):
        found = router.find("GET", path)
        assert isinstance(found, Match)
        assert found.route.template == template
    assert router.find("GET", "/b") is None
