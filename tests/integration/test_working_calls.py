"""Each call of the administration is answered 2xx by its handler, as its route declares.

The calls stand in `working_calls.txt`; those that no broker alone answers so stand in `UNREACHED`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from http import HTTPStatus
from http.client import HTTPConnection
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import urlsplit

import pulsar

from pulsar_py.admin.http_messages import Response
from pulsar_py.admin.operations.absent_services import PREFIXES
from pulsar_py.admin.router import Route
from pulsar_py.testing.broker_thread import BrokerThread
from tests.rest_conformance import Conformance, declared_routes

TABLE: Final = Path(__file__).with_name("working_calls.txt")
UNREACHED: Final = {
    "PUT {topic}/offload": "there is nowhere to offload to",
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


class Caller:
    """Makes the calls of the table on one broker."""

    def __init__(self, broker: BrokerThread, conformance: Conformance) -> None:
        self._broker = broker
        self._conformance = conformance
        address = urlsplit(broker.web_service_url)
        assert address.hostname is not None
        self._connection = HTTPConnection(address.hostname, address.port, timeout=60)
        self._names = {"broker": address.netloc, "namespace": "public/default"}
        self.refused: list[str] = []  # calls that were not answered 2xx

    def call(self, call: Call) -> None:
        """Make one call, or publish what the calls that follow read."""
        if call.method == "publish":
            self._publish(call.path)
            return
        path, body = self._filled(call.path), self._filled(call.body)
        path = path.replace("~", "/admin/v2").replace("/T", "/public/default", 1)
        headers = {"Content-Type": "application/json"} if body else {}
        response = self._send(call.method, path, body, headers)
        if not HTTPStatus.OK <= response.status < HTTPStatus.MULTIPLE_CHOICES:
            self.refused.append(f"{call.method} {path}: {response.status} {response.body!r}")
        self._conformance.check(call.method, path, response)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _filled(self, text: str) -> str:
        if "{bundle}" in text and "bundle" not in self._names:
            path = "/lookup/v2/topic/persistent/public/default/there/bundle"
            self._names["bundle"] = self._send("GET", path).body.decode()
        for name, value in self._names.items():
            text = text.replace(f"{{{name}}}", value)
        return text

    def _send(
        self, method: str, path: str, body: str = "", headers: dict[str, str] | None = None
    ) -> Response:
        self._connection.request(method, path, body or None, headers or {})
        answer = self._connection.getresponse()
        return Response(
            answer.status, answer.read(), (answer.getheader("Content-Type") or "").partition(";")[0]
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
        caller.close()
    assert caller.refused == []
    due = {
        f"{each.method} {each.template}"
        for each in conformance.routes
        if not each.template.startswith(tuple(PREFIXES))
    }
    reached = {f"{method} {template}" for method, template in conformance.succeeded}
    unreached = due - reached
    assert {shortened(each) for each in unreached} == UNREACHED.keys()


def shortened(route: str) -> str:
    """A route without what most templates begin or end with."""
    place = "{domain:persistent|non-persistent}/{tenant}/{namespace}/"
    return route.replace("/admin/v2/", "").replace(place, "").removesuffix("/{tenant}/{namespace}")
