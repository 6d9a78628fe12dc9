"""Plays one group of recorded calls against a broker and says which of them are answered otherwise."""

from __future__ import annotations

import base64
import http.client
import json
import re
import time
import uuid
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pulsar

from pulsar_py.admin.http_messages import Response
from tests.integration.admin_recordings.matching import differences, holds, look_up, part_of
from tests.rest_conformance import Conformance

RECORDING = Path(__file__).parents[2] / "recordings" / "admin_recordings.json"
RECEIVE_MILLIS = 10_000
BACKGROUND_SECONDS = 30.0
_SEND_HEADERS = ("x-pulsar-", "location", "allow")
_TYPES = {
    "Exclusive": pulsar.ConsumerType.Exclusive,
    "Shared": pulsar.ConsumerType.Shared,
    "Failover": pulsar.ConsumerType.Failover,
    "KeyShared": pulsar.ConsumerType.KeyShared,
}


def load_groups() -> dict[str, list[dict[str, Any]]]:
    """Steps by the name of their group."""
    recording = json.loads(RECORDING.read_text("utf-8"))
    return {name: group["steps"] for name, group in recording["groups"].items()}


@dataclass
class Answer:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes


@dataclass
class Player:
    """One group's variables, clients and outcomes."""

    web_service_url: str
    client: pulsar.Client
    hopeless: Collection[str] = ()  # calls that are not waited for
    conformance: Conformance | None = None
    failures: dict[str, list[str]] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)
    _open: dict[str, Any] = field(default_factory=dict)
    _received: dict[str, list[Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        x = uuid.uuid4().hex[:8]
        self.variables.update(x=x, t=f"rec-{x}", cluster="standalone")

    def play(self, steps: list[dict[str, Any]]) -> None:
        """Play all steps; a set-up call that fails counts as a call named `setup-<index>`."""
        for index, step in enumerate(steps):
            if "action" in step:
                self._act(step)
            elif step.get("setup"):
                answer = self._call(step)
                if answer.status not in {200, 204}:
                    self.failures[f"setup-{index}"] = [f"{answer.status} {answer.body!r}"]
            else:
                self._check(step)
        for each in self._open.values():
            each.close()

    # --- calls ---------------------------------------------------------------------------------

    def _check(self, step: Mapping[str, Any]) -> None:
        waits = "until" in step and step["name"] not in self.hopeless
        step = json.loads(self._fill(json.dumps(step)))
        deadline = time.monotonic() + (BACKGROUND_SECONDS if waits else 0.0)
        while True:
            answer = self._call(step)
            found = self._differences(step, answer)
            if not found or time.monotonic() >= deadline:
                break
            time.sleep(0.05)
        if found:
            self.failures[step["name"]] = found
        for name, path in step.get("capture", {}).items():
            self.variables[name] = str(look_up(json.loads(answer.body), path))

    def _call(self, step: Mapping[str, Any]) -> Answer:
        url = urlsplit(self.web_service_url)
        connection = http.client.HTTPConnection(url.hostname or "", url.port, timeout=30)
        try:
            body = step.get("body")
            connection.putrequest(step["method"], self._fill(step["path"]))
            data = None if body is None else self._fill(body).encode()
            for name, value in (step.get("headers") or {}).items():
                connection.putheader(name, value)
            if data is not None or step["method"] in {"PUT", "POST"}:
                connection.putheader("Content-Length", str(len(data or b"")))
            connection.endheaders(data)
            response = connection.getresponse()
            headers = {name.lower(): value for name, value in response.getheaders()}
            answer = Answer(response.status, headers, response.read())
        finally:
            connection.close()
        if self.conformance is not None:
            kind = answer.headers.get("content-type")
            found = Response(answer.status, answer.body, kind)
            self.conformance.check(step["method"], self._fill(step["path"]), found)
        return answer

    def _fill(self, text: str) -> str:
        return re.sub(
            r"\$\{(\w+)(?:\|int)?\}", lambda match: self.variables.get(match[1], match[0]), text
        )

    def _differences(self, step: Mapping[str, Any], answer: Answer) -> list[str]:
        expected = step["answer"]
        status_is_fine = answer.status in {expected["status"], *step.get("also", ())} or (
            expected["status"] == 500 and answer.status >= 400
        )
        if not status_is_fine:
            return [f"status {answer.status} {answer.body[:200]!r}, not {expected['status']}"]
        if (
            "until" in step
            and step["until"]
            and not holds(step["until"], answer.status, answer.body)
        ):
            return [f"still {answer.body[:200]!r}"]
        if step.get("kind") == "status" or answer.status != expected["status"]:
            return []
        return [
            *_header_differences(expected, answer),
            *_body_differences(step, expected, answer),
        ]

    # --- actions -------------------------------------------------------------------------------

    def _act(self, step: Mapping[str, Any]) -> None:
        step = json.loads(self._fill(json.dumps(step)))
        getattr(self, f"_do_{step['action']}")(step)

    def _do_producer(self, step: Mapping[str, Any]) -> None:
        self._open[step["id"]] = self._producer(step)

    def _producer(self, step: Mapping[str, Any]) -> Any:
        options: dict[str, Any] = {}
        if "compression" in step:
            options["compression_type"] = getattr(pulsar.CompressionType, step["compression"])
        if step.get("batch"):
            options["batching_enabled"] = True
            options["batching_max_publish_delay_ms"] = 1000
        return self.client.create_producer(
            step["topic"],
            producer_name=step.get("producer_name"),
            properties=step.get("properties") if step["action"] == "producer" else None,
            **options,
        )

    def _do_send(self, step: Mapping[str, Any]) -> None:
        self._send(self._open[step["id"]], step)

    def _send(self, producer: Any, step: Mapping[str, Any]) -> None:
        first = step.get("start", 0)
        ids: list[Any] = []
        for number in range(first, first + step["count"]):
            content = (step.get("text") or f"message-{number}").encode()
            options: dict[str, Any] = {}
            if "key" in step:
                options["partition_key"] = step["key"].replace("#", str(number))
            if step["action"] == "publish" and "properties" in step:
                options["properties"] = step["properties"]
            if step.get("batch"):
                producer.send_async(
                    content, lambda _, message_id: ids.append(message_id), **options
                )
            else:
                ids.append(producer.send(content, **options))
        producer.flush()
        for number, message_id in enumerate(ids if "save" in step else ()):
            self.variables[f"{step['save']}{number}_ledger"] = str(message_id.ledger_id())
            self.variables[f"{step['save']}{number}_entry"] = str(message_id.entry_id())

    def _do_publish(self, step: Mapping[str, Any]) -> None:
        producer = self._producer(step)
        self._send(producer, step)
        producer.close()

    def _do_consumer(self, step: Mapping[str, Any]) -> None:
        options: dict[str, Any] = {}
        if "queue" in step:
            options["receiver_queue_size"] = step["queue"]
        if step.get("position") == "Earliest":
            options["initial_position"] = pulsar.InitialPosition.Earliest
        self._open[step["id"]] = self.client.subscribe(
            step["topic"],
            step["subscription"],
            consumer_type=_TYPES[step.get("type", "Exclusive")],
            consumer_name=step.get("consumer_name"),
            properties=step.get("properties", {}),
            **options,
        )

    def _do_receive(self, step: Mapping[str, Any]) -> None:
        consumer = self._open[step["id"]]
        received = self._received.setdefault(step["id"], [])
        received += [consumer.receive(RECEIVE_MILLIS) for _ in range(step["count"])]

    def _do_ack(self, step: Mapping[str, Any]) -> None:
        received = self._received[step["id"]]
        for index in step.get("indexes", range(len(received))):
            self._open[step["id"]].acknowledge(received[index])

    def _do_reader(self, step: Mapping[str, Any]) -> None:
        self._open[step["id"]] = self.client.create_reader(
            step["topic"], pulsar.MessageId.earliest, reader_name=step.get("reader_name")
        )

    def _do_read(self, step: Mapping[str, Any]) -> None:
        for _ in range(step["count"]):
            self._open[step["id"]].read_next(RECEIVE_MILLIS)

    def _do_close_producer(self, step: Mapping[str, Any]) -> None:
        self._open.pop(step["id"]).close()

    _do_close_consumer = _do_close_producer

    def _do_sleep(self, step: Mapping[str, Any]) -> None:
        time.sleep(step["seconds"])

    def _do_settle(self, step: Mapping[str, Any]) -> None:
        pass

    def _do_now(self, step: Mapping[str, Any]) -> None:
        self.variables[step["save"]] = str(int(time.time() * 1000))

    def _do_wait(self, step: Mapping[str, Any]) -> None:
        deadline = time.monotonic() + BACKGROUND_SECONDS
        while time.monotonic() < deadline:
            answer = self._call({"method": "GET", "path": step["path"]})
            if holds(step["until"], answer.status, answer.body):
                return
            time.sleep(0.05)


def _header_differences(expected: Mapping[str, Any], answer: Answer) -> list[str]:
    found = []
    ours = answer.headers.get("content-type", "").partition(";")[0].strip()
    compares_type = "content_type" in expected and "other_body" not in expected
    if compares_type and ours != expected["content_type"]:
        found.append(f"content type {ours!r}, not {expected['content_type']!r}")
    for name, value in expected.get("headers", {}).items():
        actual = answer.headers.get(name.lower(), "")
        if name == "Allow":
            same = set(actual.split(",")) == set(value.split(","))
        else:
            same = not differences(value, actual)
        if not same:
            found.append(f"{name}: {actual!r}, not {value!r}")
    return found


def _body_differences(
    step: Mapping[str, Any], expected: Mapping[str, Any], answer: Answer
) -> list[str]:
    if "reason" in expected:
        return differences({"reason": "<str>"}, _json(answer.body))
    if "body" in expected:
        try:
            ours = part_of(step, _json(answer.body))
        except (LookupError, TypeError, AttributeError) as error:
            return [f"{type(error).__name__} {error} in {answer.body[:200]!r}"]
        return differences(expected["body"], ours, exact=bool(step.get("exact")))
    return _raw_body_differences(expected, answer)


def _raw_body_differences(expected: Mapping[str, Any], answer: Answer) -> list[str]:
    if "base64" in expected:
        same = base64.b64decode(expected["base64"]) == answer.body
        return [] if same else [f"body {answer.body[:200]!r}"]
    if "text" in expected:
        same = answer.status >= 400 or not differences(expected["text"], answer.body.decode())
        return [] if same else [f"body {answer.body[:200]!r}, not {expected['text']!r}"]
    if "other_body" in expected or not answer.body or answer.status >= 400:
        return []
    return [f"body {answer.body[:200]!r}, not an empty one"]


def _json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return None
