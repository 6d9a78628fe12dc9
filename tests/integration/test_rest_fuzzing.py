"""What nobody planned is sent to each call: nothing is answered 5xx, and all as it is declared.

Schemathesis makes the requests of the OpenAPI document that the broker serves; names in paths are
mostly those of things that are there.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import status_code_conformance

from pulsar_py.admin.http_messages import Response
from pulsar_py.testing.broker_thread import BrokerThread
from tests.rest_conformance import Conformance, declared_routes

THERE = {
    "tenant": "public",
    "namespace": "default",
    "topic": "there",
    "subscription": "s",
    "cluster": "standalone",
}
LEFT_ALONE = ("/brokers/drain", "/brokers/backup", "/admin/v3/packages", "/admin/v3/transactions")
"""The broker serves nothing any more afterwards; the answer is an archive, or always 503."""
LEAST_SUCCESSES = 290
"""Calls that succeed at least once, of about 410: others need more than names that are there."""


def _prepare(url: str) -> None:
    """Make what may have been deleted."""
    topic = f"{url}/admin/v2/persistent/public/default/there"
    for path in (topic, topic + "/subscription/s"):
        with suppress(HTTPError), urlopen(Request(path, method="PUT")):
            pass


def _examples_of(operation: Any, url: str, conformance: Conformance, count: int) -> None:
    """Send some requests of one operation; every second one names what is there."""
    turn = iter(range(1_000_000))

    @settings(
        max_examples=count,
        derandomize=True,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy())
    def send(case: Any) -> None:
        if next(turn) % 2 == 0:
            case.path_parameters = {
                name: THERE.get(name, value) for name, value in case.path_parameters.items()
            }
        answer = case.call(base_url=url, timeout=30)
        case.validate_response(answer, checks=[not_a_server_error, status_code_conformance])
        found = Response(
            answer.status_code,
            answer.content,
            next(iter(answer.headers.get("content-type", ())), None),
        )
        conformance.check(case.method, answer.request.path_url, found)

    send()


def _fuzz(examples_count: int, every: int = 1) -> Conformance:
    conformance = Conformance(declared_routes())
    with BrokerThread() as broker:
        url = broker.web_service_url
        with urlopen(url + "/admin/openapi.json") as answer:
            schema = schemathesis.openapi.from_dict(json.load(answer))
        operations = [result.ok() for result in schema.get_all_operations()]
        for operation in operations[::every]:
            if not operation.path.endswith(LEFT_ALONE):
                _prepare(url)
                _examples_of(operation, url, conformance, examples_count)
    return conformance


@pytest.mark.slow
def test_each_call_is_answered_as_declared_whatever_is_sent() -> None:
    conformance = _fuzz(examples_count=10)
    assert len(conformance.succeeded) >= LEAST_SUCCESSES


def test_a_request_of_some_calls_is_answered_as_declared() -> None:
    assert _fuzz(examples_count=1, every=9).succeeded
