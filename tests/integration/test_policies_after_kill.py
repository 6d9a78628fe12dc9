"""Policies of every level are there after `kill -9`, as they were answered."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path
from typing import Any

import pulsar
import pytest

from tests.interop.broker_process import BrokerProcess
from tests.interop.conftest import new_client
from tests.policy_levels import CONFIG, LEVELS, NAMESPACE, ROWS, TOPIC


def ask(broker: BrokerProcess, method: str, path: str, body: Any = ...) -> Any:
    """The JSON that a call answers."""
    data = None if body is ... else json.dumps(body).encode()
    request = urllib.request.Request(broker.web_service_url + path, data=data, method=method)
    request.add_header("Content-Type", "application/json")
    with urllib.request.urlopen(request, timeout=30) as response:
        answer = response.read()
    return json.loads(answer) if answer else None


def shown(broker: BrokerProcess) -> dict[str, Any]:
    """What is set at each level and what applies, by path."""
    found = {}
    for row in ROWS:
        for query in ("isGlobal=false", "isGlobal=true", "applied=true"):
            path = f"{TOPIC}/{row.word}?{query}"
            found[path] = ask(broker, "GET", path)
        if row.namespace_word:
            path = f"{NAMESPACE}/{row.namespace_word}"
            found[path] = ask(broker, "GET", path)
    return found


@pytest.mark.slow
def test_policies_of_all_levels_outlive_a_kill(tmp_path: Path) -> None:
    """At a third of the policies the topic's own is nearest, and so on down to the namespace's."""
    settings = [
        text
        for name, value in CONFIG.items()
        for text in ("--set", f"{name}={str(value).lower() if value is True else value}")
    ]
    with BrokerProcess(tmp_path, *settings) as broker:
        for name in ("east", "west"):
            ask(broker, "PUT", f"/admin/v2/clusters/{name}", {"serviceUrl": "http://h:1"})
        tenant = {"adminRoles": [], "allowedClusters": ["standalone", "east", "west"]}
        ask(broker, "POST", "/admin/v2/tenants/public", tenant)
        ask(broker, "PUT", TOPIC)
        nearest: dict[str, int] = {}
        for place, row in enumerate(ROWS):
            nearest[row.word] = max(row.levels[: 1 + place % len(row.levels)])
            for level in row.levels[: 1 + place % len(row.levels)]:
                ask(broker, *row.set_at(level))
        ask(broker, "DELETE", f"{TOPIC}/maxProducers")
        ask(broker, "POST", f"{TOPIC}/maxProducers?isGlobal=true", 1)
        before = shown(broker)
        broker.kill()
        broker.start()
        after = shown(broker)
        assert after == before
        for row in ROWS:
            if row.has_applied and isinstance(row.values[1], int) and row.word != "maxProducers":
                applied = after[f"{TOPIC}/{row.word}?applied=true"]
                level = nearest[row.word]
                assert applied == row.expected(level), (row.word, LEVELS[level])
        client = new_client(broker.service_url)
        topic = TOPIC.removeprefix("/admin/v2/").replace("persistent/", "persistent://", 1)
        client.create_producer(topic)
        with pytest.raises(pulsar.ProducerBusy):
            client.create_producer(topic)
        client.close()
