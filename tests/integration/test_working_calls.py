"""Each call of the administration is answered 2xx by its handler, as its route declares.

Schemathesis makes them, as operations of the OpenAPI document that the broker serves, and holds
status, content type and body to it. `test_rest_fuzzing` has it make up calls of its own; most
handlers succeed there, too, but who compacts a topic needs one with messages. The calls stand in `working_calls.txt`; those that no broker alone answers so stand in `UNREACHED`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qs, unquote_plus, urlsplit
from urllib.request import urlopen

import pulsar
import schemathesis
from schemathesis.checks import not_a_server_error
from schemathesis.core import NOT_SET
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from pulsar_py.admin.http_messages import Response
from pulsar_py.admin.operations.absent_services import PREFIXES
from pulsar_py.admin.router import Route
from pulsar_py.testing.broker_thread import BrokerThread
from tests.rest_conformance import Conformance, declared_routes, path_of

TABLE: Final = Path(__file__).with_name("working_calls.txt")
UNREACHED: Final = {
    "POST brokers/drain": "a broker alone has nobody who could take its topics",
    "GET broker-stats/broker-resource-availability": "the load manager does not support it",
}
"""Handlers without a success, and why."""
ENTRY_INDEX: Final = "org.apache.pulsar.common.intercept.AppendIndexMetadataInterceptor"
POLICY_PLACES: Final = {
    "namespace": ("/namespaces/{tenant}/{namespace}/", "~/namespaces/T/"),
    "topic": ("/{tenant}/{namespace}/{topic}/", "~/persistent/T/there/"),
}


class Call(NamedTuple):
    """One call, with names in braces."""

    method: str
    path: str
    body: str


def calls_of(line: str, routes: Sequence[Route]) -> Iterator[Call]:
    """The calls of one line; of a policy those that it has."""
    first, path, body = [*line.split(maxsplit=2), ""][:3]
    if first not in POLICY_PLACES:
        yield Call(first, path, body)
        return
    template, place = POLICY_PLACES[first]
    path_template = path.replace("s/", "{subName}/") if path.startswith("s/") else path
    methods = {each.method for each in routes if each.template.endswith(template + path_template)}
    for method in ("POST", "PUT", "GET", "DELETE"):
        if method in methods:
            is_written = method in {"POST", "PUT"}
            query = body if is_written and body.startswith("?") else ""
            sent = body if is_written and not query and body != "-" else ""
            yield Call(method, place + path + query, sent)


CHECKS: Final = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]


class Caller:
    """Has schemathesis make the calls of the table on one broker."""

    def __init__(self, broker: BrokerThread, conformance: Conformance) -> None:
        self._broker = broker
        self._conformance = conformance
        self._url = broker.web_service_url
        with urlopen(self._url + "/admin/openapi.json") as answer:
            self._schema = schemathesis.openapi.from_dict(json.load(answer))
        self._names = {"broker": urlsplit(self._url).netloc, "namespace": "public/default"}
        self.refused: list[str] = []  # calls that were not answered 2xx
        self.reached: set[str] = set()  # routes of which one was

    def call(self, call: Call) -> None:
        """Make one call, or publish what the calls that follow read."""
        if call.method == "publish":
            self._publish(call.path)
            return
        path, body = self._filled(call.path), self._filled(call.body)
        path = path.replace("~", "/admin/v2").replace("/T", "/public/default", 1)
        route, response = self._send(call.method, path, body)
        if HTTPStatus.OK <= response.status < HTTPStatus.MULTIPLE_CHOICES:
            self.reached.add(f"{route.method} {route.template}")
        else:
            self.refused.append(f"{call.method} {path}: {response.status} {response.body!r}")
        self._conformance.check(call.method, path, response)

    def _filled(self, text: str) -> str:
        if "{bundle}" in text and "bundle" not in self._names:
            path = "/lookup/v2/topic/persistent/public/default/there/bundle"
            self._names["bundle"] = self._send("GET", path)[1].body.decode()
        for name, value in self._names.items():
            text = text.replace(f"{{{name}}}", value)
        return text

    def _send(self, method: str, target: str, body: str = "") -> tuple[Route, Response]:
        path, _, query = target.partition("?")
        found = self._conformance.match(method, path)
        assert found is not None, f"{method} {path} is no route"
        operation = self._schema[path_of(found.route)][method]
        kind = next((each.media_type for each in operation.body), "application/json")
        sent = _value_of(body) if kind == "application/json" else body.encode()
        case: Any = operation.Case(
            path_parameters={
                # What is several segments stands in the path as it is.
                name: value if "/" in value else unquote_plus(value)
                for name, value in found.parameters.items()
            },
            query=parse_qs(query, keep_blank_values=True),
            body=sent if body else NOT_SET,
            media_type=kind if body else None,
        )
        answer = case.call(base_url=self._url, timeout=60)
        case.validate_response(answer, checks=CHECKS)
        kind = next(iter(answer.headers.get("content-type", ())), "")
        return found.route, Response(
            answer.status_code, answer.content, kind.partition(";")[0] or None
        )

    def _publish(self, topic: str) -> None:
        client = pulsar.Client(
            self._broker.service_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
        )
        producer = client.create_producer(topic)
        sent = [producer.send(b"%d" % number) for number in range(10)]
        self._names["ledger"] = str(sent[0].ledger_id())
        client.close()


def test_each_handler_is_reached_with_success(tmp_path: Path) -> None:
    (tmp_path / "status").touch()
    config = {
        "statusFilePath": str(tmp_path / "status"),
        "forceDeleteNamespaceAllowed": True,
        "entryFilterNames": "tests.hook_classes.ByPayload",
        "brokerEntryMetadataInterceptors": ENTRY_INDEX,
    }
    conformance = Conformance(declared_routes())
    with BrokerThread(data_dir=tmp_path / "data", config=config) as broker:
        caller = Caller(broker, conformance)
        for line in TABLE.read_text("utf-8").splitlines():
            if line and not line.startswith("#"):
                for call in calls_of(line, conformance.routes):
                    caller.call(call)
    assert caller.refused == []
    due = {
        f"{each.method} {each.template}"
        for each in conformance.routes
        if not each.template.startswith(tuple(PREFIXES))
    }
    unreached = due - caller.reached
    assert {shortened(each) for each in unreached} == UNREACHED.keys()


def _value_of(body: str) -> Any:
    """What a body says; a text need not be quoted."""
    try:
        return json.loads(body)
    except ValueError:
        return body


def shortened(route: str) -> str:
    """A route without what most templates begin or end with."""
    place = "{domain:persistent|non-persistent}/{tenant}/{namespace}/"
    return route.replace("/admin/v2/", "").replace(place, "").removesuffix("/{tenant}/{namespace}")
