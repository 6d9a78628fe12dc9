"""Makes the OpenAPI document of all routes from their declarations (pure).

Nothing here is imported before somebody asks for the document: GET `/admin/openapi.json`, and
`make docs`, which writes it beside the documentation.

A parameter with alternatives, `{domain:persistent|non-persistent}`, has them as its values. A
successful answer of JSON has its schema; any refusal is `Refusal`, a page or a text.

Source: OpenAPI 3.1; JSON Schema of msgspec.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from http import HTTPStatus
from typing import Any, Final

import msgspec

from pulsar_py.admin.api.answers import Refusal, type_of
from pulsar_py.admin.declared import Body
from pulsar_py.admin.http_messages import JSON, TEXT
from pulsar_py.admin.resources.brokers import VERSION
from pulsar_py.admin.router import Route
from pulsar_py.server.security.actions import Action

Json = dict[str, Any]  # Any: JSON

VERSION_OF_FORM: Final = "3.1.0"

_REF: Final = "#/components/schemas/{name}"
_PARAMETER: Final = re.compile(r"\{(\w+)(?::([^}]+))?\}")
_COMMON: Final = (
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.UNAUTHORIZED,
    HTTPStatus.FORBIDDEN,
    HTTPStatus.NOT_FOUND,
    HTTPStatus.METHOD_NOT_ALLOWED,
    HTTPStatus.NOT_ACCEPTABLE,
    HTTPStatus.PRECONDITION_FAILED,
    HTTPStatus.SERVICE_UNAVAILABLE,
)
"""Refusals that every call may have."""
_OF_CHANGES: Final = (
    HTTPStatus.CONFLICT,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    HTTPStatus.UNPROCESSABLE_ENTITY,
    HTTPStatus.TOO_MANY_REQUESTS,
    HTTPStatus.INSUFFICIENT_STORAGE,
)
"""Further ones of calls that change something."""


def document(routes: Iterable[Route]) -> Json:
    """The OpenAPI document of the routes; those of everything below a path are left out."""
    shown = [each for each in routes if "..." not in each.template]
    types = [Refusal]
    for route in shown:
        types += [type_of(route.answer)] if route.answer is not None else []
        types += [route.body.kind] if isinstance(route.body, Body) else []
    schemas, components = msgspec.json.schema_components(types, ref_template=_REF)
    found = iter(schemas[1:])
    paths: dict[str, Json] = {}
    for route in shown:
        answer = next(found) if route.answer is not None else None
        body = next(found) if isinstance(route.body, Body) else None
        path, parameters = _path(route.template)
        operation = _operation(route, path, parameters, answer, body)
        paths.setdefault(path, {})[route.method.lower()] = operation
    refusals = sorted(dict.fromkeys(each for route in shown for each in refusals_of(route)))
    return {
        "openapi": VERSION_OF_FORM,
        "info": {
            "title": "pulsar_py administration",
            "version": VERSION,
            "description": "REST v2 of Apache Pulsar as this broker serves it.",
        },
        "paths": dict(sorted(paths.items())),
        "components": {
            "schemas": components,
            "responses": {str(int(each)): _refusal(each) for each in refusals},
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "basic": {"type": "http", "scheme": "basic"},
            },
        },
    }


def refusals_of(route: Route) -> list[HTTPStatus]:
    """The statuses with which a route may refuse, in order."""
    own = map(HTTPStatus, route.errors)
    found = (*_COMMON, *own, *(() if route.method == "GET" else _OF_CHANGES))
    return sorted(dict.fromkeys(found))


def _path(template: str) -> tuple[str, dict[str, Json]]:
    """The path of a template, and the types of its parameters by name."""
    parameters: dict[str, Json] = {}
    for name, choices in _PARAMETER.findall(template):
        chosen: Json = {"enum": choices.split("|")} if choices else {"minLength": 1}
        parameters[name] = {"type": "string", **chosen}
    return _PARAMETER.sub(r"{\1}", template), parameters


def _operation(
    route: Route, path: str, parameters: dict[str, Json], answer: Json | None, body: Json | None
) -> Json:
    handler = route.handler
    summary = (getattr(handler, "__doc__", None) or "").partition("\n")[0]
    operation: Json = {
        "operationId": f"{route.method.lower()}{path}",
        "tags": [path.strip("/").split("/")[2] if path.startswith("/admin/v2/") else "other"],
        "parameters": [
            *_path_parameters(route, parameters),
            *(
                {"name": each.name, "in": "query", "schema": each.json_schema()}
                for each in route.parameters
                if each.place == "query"
            ),
        ],
        "responses": _responses(route, answer),
    }
    if summary:
        operation["summary"] = summary
    if isinstance(route.needs, Action):
        operation["x-needs"] = route.needs.name
    if route.body is not None:
        content = {kind: {"schema": body or {"type": "string"}} for kind in route.consumes}
        operation["requestBody"] = {"content": content}
    return operation


def _path_parameters(route: Route, parameters: dict[str, Json]) -> Iterable[Json]:
    declared = {each.name: each.json_schema() for each in route.parameters if each.place == "path"}
    for name, schema in (parameters | declared).items():
        yield {"name": name, "in": "path", "required": True, "schema": schema}


def _responses(route: Route, answer: Json | None) -> Json:
    success: Json = {"description": HTTPStatus(route.status).phrase}
    if answer is not None:
        success["content"] = {JSON: {"schema": answer}}
    found = {str(int(route.status)): success}
    if route.may_be_empty:
        success["description"] = "the value; an empty body where there is none"
        found["204"] = {"description": "there is no value"}
    for status in refusals_of(route):
        found[str(int(status))] = {"$ref": f"#/components/responses/{int(status)}"}
    return found


def _refusal(status: HTTPStatus) -> Json:
    text = {"schema": {"type": "string"}}
    schema = {"$ref": _REF.format(name=Refusal.__name__)}
    return {
        "description": status.phrase,
        "content": {JSON: {"schema": schema}, "text/html": text, TEXT: text},
    }
