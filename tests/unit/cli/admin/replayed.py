"""Runs recorded command lines of pulsar-admin 4.0.8 through `pulsar-py admin`, without a socket.

The recording (tests/recordings/pulsar_admin.json) has what each line sent and printed, and under
`answers` what the server answered: method, pattern of the path, JSON or `{"$raw", "$headers"}`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import click
from click.testing import CliRunner

from pulsar_py.admin_client.call import NO_BODY, Call, Reply, encoded
from pulsar_py.cli.admin import command, running
from tests.unit.admin_client.recorded_calls import Request, has_body, recording, request_of


@dataclass
class Fake:
    """Answers calls as the recorded server did, and keeps them.

    `own` has answers of a test, by the end of the path.
    """

    own: dict[str, Any] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)

    def __call__(self, call: Call[Any]) -> Reply:
        body = [] if call.body is NO_BODY else [_parsed(encoded(call.body))]
        self.requests.append(request_of(call.method, call.path, *body))
        path = call.path.partition("?")[0]
        for end, value in self.own.items():
            if path.endswith(f"/{end}"):
                return _reply(value)
        for method, pattern, value in recording()["answers"]:
            if method == call.method and re.fullmatch(pattern, path):
                return _reply(value)
        return Reply(204, {}, b"", lambda: None)


def _reply(value: Any) -> Reply:
    if isinstance(value, dict) and "$raw" in value:
        headers = {name.lower(): each for name, each in value["$headers"].items()}
        return Reply(200, headers, value["$raw"].encode(), lambda: json.loads(value["$raw"]))
    data = json.dumps(value).encode()
    return Reply(200, {}, data, lambda: json.loads(data))


def _parsed(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        return data.decode()


def run(*arguments: str, fake: Fake | None = None) -> tuple[Fake, click.testing.Result]:
    """Run one command line; its calls go to a `Fake`."""
    server = fake or Fake()
    real = running.run_word
    with mock.patch.object(
        running, "run_word", lambda word, args, options: real(word, args, options, server)
    ):
        done = CliRunner().invoke(command.admin, list(arguments))
    return server, done


def calls_of(*groups: str) -> list[dict[str, Any]]:
    """The recorded calls of these groups."""
    return [each for each in recording()["calls"] if each["arguments"][0] in groups]


def is_same(ours: Sequence[Request], theirs: Sequence[Sequence[Any]]) -> bool:
    """Whether the same requests were sent, in any order."""
    recorded = [request_of(method, path, *body) for method, path, *body in theirs]
    if len(ours) != len(recorded):
        return False
    left = list(recorded)
    for request in ours:
        for each in left:
            if request[:3] == each[:3] and has_body(each[3], request[3]):
                left.remove(each)
                break
        else:
            return False
    return True


OTHERWISE = {
    "tenants update t": "pulsar-admin asks twice for the same tenant",
    "topicPolicies get-dispatcher-pause-on-ack-state-persistent persistent://t/n/a b": (
        "pulsar-admin prints a future instead of its value"
    ),
    "topicPolicies remove-dispatcher-pause-on-ack-state-persistent --global "
    "persistent://t/n/a b": "pulsar-admin does not wait: the request was recorded one line later",
    "topicPolicies get-replication-clusters persistent://t/n/a b": "as above",
    "topicPolicies set-replication-clusters --clusters c1,c2 --global persistent://t/n/a b": (
        "as above"
    ),
    "topicPolicies remove-replication-clusters persistent://t/n/a b": "as above",
    "brokers namespaces -u http://h:8080 c1": "pulsar-admin asks with a path that has no answer",
    "topics create-subscription -s s/1 persistent://t/n/a b": (
        "pulsar-admin sends a batch size, which is no field of the position"
    ),
    "topics create-subscription -s s -m earliest t/n/x": "as above",
    "topics create-subscription -s s x": "as above",
    "topics reset-cursor -s s/1 --time 10m persistent://t/n/a b": "the request has the time of day",
    "transactions coordinator-stats -c 7": "the recorded server answered with all coordinators",
    "transactions position-stats-in-pending-ack -t persistent://t/n/a b -s s/1 -l 9 -e 9": (
        "pulsar-admin asks and prints nothing"
    ),
    "transactions position-stats-in-pending-ack -t persistent://t/n/a b -s s/1 -l 9 -e 9 -b 7": (
        "as above"
    ),
    "namespaces destinations t/n": "pulsar-admin leaves out a parameter that has its default",
}
"""Recorded lines that we send or print otherwise, and why."""


def differences(*groups: str, schema_file: str = "") -> list[str]:
    """What differs from the recording in these groups; lines of `OTHERWISE` have to differ."""
    wrong = []
    for each in calls_of(*groups):
        line = " ".join(each["arguments"])
        server, done = run(*(schema_file if part == "schema.json" else part
                             for part in each["arguments"]))  # fmt: skip
        is_equal = is_same(server.requests, each["requests"]) and done.stdout == each["output"]
        if done.exit_code or is_equal == (line in OTHERWISE):
            wrong.append(f"{line}: sent {server.requests}, printed {done.output!r}")
    return wrong
