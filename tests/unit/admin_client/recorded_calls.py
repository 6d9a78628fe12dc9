"""What `pulsar-admin` 4.0.8 sent for each of its commands, and what our declared calls send.

The recording (tests/recordings/pulsar_admin.json) has the requests as a server of HTTP saw them.
Two are the same if method, decoded path and query are, and the recorded body has what ours has:
Java writes fields that are unset as their defaults, and sets in any order.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any
from urllib.parse import parse_qsl, unquote_plus

from pulsar_py.admin_client.call import NO_BODY, Call, encoded
from tests.package_source import ROOT

NAMESPACE = "t/n"
TOPIC = "persistent://t/n/a b"
SUBSCRIPTION = "s/1"
BUNDLE = "0x00000000_0x80000000"

Request = tuple[str, str, dict[str, str], Any]


@cache
def recording() -> dict[str, Any]:
    text = (ROOT / "tests" / "recordings" / "pulsar_admin.json").read_text()
    found: dict[str, Any] = json.loads(text)
    return found


@cache
def recorded() -> tuple[Request, ...]:
    requests = [each for call in recording()["calls"] for each in call["requests"]]
    return tuple(request_of(method, path, *body) for method, path, *body in requests)


def sent(call: Call[Any]) -> Request:
    """What goes out for a call."""
    body = [] if call.body is NO_BODY else [json.loads(encoded(call.body))]
    return request_of(call.method, call.path, *body)


def was_recorded(call: Call[Any]) -> bool:
    method, path, query, body = sent(call)
    return any((method, path, query) == each[:3] and has_body(each[3], body) for each in recorded())


def request_of(method: str, target: str, body: Any = None) -> Request:
    path, _, query = target.partition("?")
    while (decoded := unquote_plus(path)) != path:  # Java encodes some names twice
        path = decoded
    return method, path, dict(parse_qsl(query, keep_blank_values=True)), body


def has_body(whole: Any, part: Any) -> bool:
    if isinstance(part, dict) and isinstance(whole, dict):
        return all(key in whole and has_body(whole[key], value) for key, value in part.items())
    if isinstance(part, list) and isinstance(whole, list):
        return sorted(map(str, part)) == sorted(map(str, whole))
    return bool(whole == part)
