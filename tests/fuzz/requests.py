"""Good requests for each REST route, and chance changes to them (pure, by a `random.Random`).

An input is a request as it stands on the wire. Of each route there is one as short as may be, and one
with all parameters and the whole body that the route declares.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin
from urllib.parse import quote

from msgspec import Struct
from msgspec.structs import fields

from pulsar_py.admin.declared import Body, Flag, Number, Parameter, PathNumber, Text
from pulsar_py.admin.router import Route
from tests.fuzz.inputs import EXTREME_NUMBERS, ODD_TEXTS, mutate_bytes

_ODD_JSON: Final = (
    "null", "[]", "{}", "0", "-1", '""', "true", "1e999", "NaN", "[" * 300 + "]" * 300, "9" * 400,
    '{"a":' * 150 + "1" + "}" * 150, '"\\ud800"', "{", '{"numBundles":2147483647}',
    '{"schema":"{","type":"AVRO","properties":{}}', '{"ledgerId":-1,"entryId":9223372036854775808}',
)  # fmt: skip


_METHODS: Final = ("GET", "PUT", "POST", "DELETE", "HEAD", "OPTIONS", "PATCH")
# Those that would end the run, or change what it watches by.
LEFT_OUT: Final = re.compile(r"shutdown|/brokers/logging|/brokers/configuration|health")
_NAMES: Final = {"tenant": "public", "namespace": "default", "cluster": "standalone", "domain": "persistent"}  # fmt: skip


def rest_seeds(routes: Sequence[Route]) -> list[bytes]:
    """Two requests for each route."""
    seeds = []
    for route in routes:
        if not LEFT_OUT.search(route.template):
            seeds.append(request_of(route, body=b"{}" if route.consumes else b""))
            if route.takes:
                seeds.append(request_of(route, _query_of(route)))
    return seeds


def _query_of(route: Route) -> str:
    named = [each for each in route.parameters if not isinstance(each, PathNumber)]
    return "".join(
        f"{'&' if at else '?'}{each.name}={quote(_plausible(each))}"
        for at, each in enumerate(named)
    )


def _plausible(parameter: Parameter) -> str:
    if isinstance(parameter, Flag):
        return "true"
    if isinstance(parameter, Text) and parameter.choices:
        return parameter.choices[0]
    return "1" if isinstance(parameter, Number) else _NAMES.get(parameter.name, "1")


def _body_of(route: Route) -> bytes:
    body = route.body
    if body is None:
        return b""
    if not isinstance(body, Body):
        return b"text"
    return json.dumps(whole(body.kind)).encode()


def whole(kind: Any) -> Any:  # Any: a type or a form of one; JSON
    """JSON of a type, with all its fields."""
    if get_origin(kind) is not None:
        return _whole_form(get_origin(kind), get_args(kind))
    if kind is Any:
        return {}
    if issubclass(kind, Struct):
        return {each.encode_name: whole(each.type) for each in fields(kind)}
    if issubclass(kind, Enum):
        return next(iter(kind)).value
    return {bool: True, str: "1"}.get(kind, 1)


def _whole_form(origin: Any, arguments: Sequence[Any]) -> Any:  # Any: as above
    if origin is Literal:
        return arguments[0]
    if origin in {Union, UnionType}:
        return whole(next(each for each in reversed(arguments) if each is not NoneType))
    if origin is list:
        return [whole(arguments[0])]
    if origin is dict:
        return {"1": whole(arguments[1])}
    assert origin is Annotated, f"no body is a {origin}"
    return whole(arguments[0])


def _path_of(template: str) -> str:
    def value(match: re.Match[str]) -> str:
        name = match[1].rstrip("*").partition(":")[0]
        return _NAMES.get(name, "t" if "opic" in name else "1")

    path = re.sub(r"\{([^}]+)\}", value, template)
    return re.sub(r"\(([^|)]*)[^)]*\)", r"\1", path)


def request_of(
    route: Route, query: str = "", *, body: bytes | None = None, template: str | None = None
) -> bytes:
    """A request for a route; `template` has parts of its path filled in already."""
    path = _path_of(template or route.template) + query
    return _request(route.method, path, _body_of(route) if body is None else body)


def _request(method: str, path: str, body: bytes) -> bytes:
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def preparing_requests() -> list[bytes]:
    """What makes the tenant, the namespace and the topics that the good requests name."""
    tenant = b'{"adminRoles":[],"allowedClusters":["standalone"]}'
    topic = "/admin/v2/persistent/public/default/t"
    return [
        _request("PUT", "/admin/v2/tenants/public", tenant),
        _request("PUT", "/admin/v2/namespaces/public/default", b""),
        _request("PUT", topic, b""),
        _request("PUT", f"{topic}/subscription/1", b""),
    ]


def mutate_requests(chance: random.Random, data: bytes) -> bytes:
    """Another body, part of it, query or part of the path; or any bytes changed."""
    head, _, body = data.partition(b"\r\n\r\n")
    parts = head.split(b"\r\n")[0].split(b" ")
    if len(parts) != 3 or chance.random() < 0.15:
        return mutate_bytes(chance, data)
    method, target = (part.decode("latin-1") for part in parts[:2])
    kind = chance.randrange(5)
    if kind == 0:
        body = chance.choice(_ODD_JSON).encode("utf-8", "surrogatepass")
    elif kind == 1:
        body = mutate_bytes(chance, body)
    elif kind == 2:
        segments = target.split("/")
        segments[chance.randrange(len(segments))] = _escaped(chance.choice(ODD_TEXTS))
        target = "/".join(segments)
    elif kind == 3:
        target = _other_query(chance, target)
    else:
        body = _other_json(chance, body)
    if chance.random() < 0.1:
        method = chance.choice(_METHODS)
    return _request(method, target, body)


@cache
def _escaped(text: str) -> str:
    return "".join(f"%{each:02X}" for each in text.encode("utf-8", "replace"))


def _other_query(chance: random.Random, target: str) -> str:
    path, _, query = target.partition("?")
    fields = query.split("&") if query else ["x=1"]
    at = chance.randrange(len(fields))
    name = fields[at].partition("=")[0]
    kind = chance.randrange(4)
    if kind == 0:
        value = _escaped(chance.choice(ODD_TEXTS))
    elif kind == 1:
        value = chance.choice(("true", "false", "%zz", ""))
    else:
        value = str(chance.choice(EXTREME_NUMBERS))
    fields[at] = f"{name}={value}"
    if chance.random() < 0.2:
        del fields[chance.randrange(len(fields))]
    return f"{path}?{'&'.join(fields)}"


def _other_json(chance: random.Random, body: bytes) -> bytes:
    """Another value somewhere in it; a whole one where it is none."""
    try:
        root: Any = [json.loads(body)]  # Any: JSON
    except (ValueError, RecursionError):
        root = [None]
    part, key = root, 0
    while isinstance(inner := part[key], dict | list) and inner and chance.random() < 0.9:
        part, key = inner, chance.choice([*inner] if isinstance(inner, dict) else range(len(inner)))
    kind = chance.randrange(4)
    if kind == 0:
        part[key] = chance.choice(ODD_TEXTS)
    elif kind == 1:
        part[key] = chance.choice((None, True, [], {}, 0.5, [part[key]] * 50))
    elif kind == 2 and isinstance(part, dict):
        part[chance.choice(ODD_TEXTS)] = part.pop(key)
    else:
        part[key] = chance.choice(EXTREME_NUMBERS)
    return json.dumps(root[0]).encode("utf-8", "replace")
