"""What moves or pauses a subscription is durable once it was answered: `kill -9` undoes none of it."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path
from typing import Any

import pulsar
import pytest

from tests.interop.broker_process import BrokerProcess
from tests.interop.conftest import new_client

MESSAGES = 10

ADMIN = "/admin/v2/persistent/public/default"


def ask(broker: BrokerProcess, method: str, path: str, body: Any = None) -> Any:
    """The JSON that a call answers."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(broker.web_service_url + path, data=data, method=method)
    request.add_header("Content-Type", "application/json")
    with urllib.request.urlopen(request, timeout=30) as response:
        answer = response.read()
    return json.loads(answer) if answer else None


@pytest.mark.slow
def test_seek_skip_reset_clear_and_pause_outlive_a_kill(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path) as broker:
        client = new_client(broker.service_url)
        ids: dict[str, list[pulsar.MessageId]] = {}
        for name in ("seek", "skip", "reset", "clear", "pause", "receipts"):
            consumer = client.subscribe(
                name,
                "s",
                pulsar.ConsumerType.Shared,
                initial_position=pulsar.InitialPosition.Earliest,
            )
            producer = client.create_producer(name, batching_enabled=False)
            ids[name] = [producer.send(b"%d" % number) for number in range(MESSAGES)]
            consumer.close()
            producer.close()
        consumer = client.subscribe("seek", "s", pulsar.ConsumerType.Shared)
        with_receipts = client.subscribe(
            "receipts", "s", pulsar.ConsumerType.Shared, receiver_queue_size=MESSAGES
        )
        received = [with_receipts.receive(30_000) for _ in range(MESSAGES)]
        assert len(received) == MESSAGES
        # The moves; nothing is waited for behind their answers.
        consumer.seek(ids["seek"][7])
        ask(broker, "POST", f"{ADMIN}/skip/subscription/s/skip/4")
        target = ids["reset"][6]
        position = {"ledgerId": target.ledger_id(), "entryId": target.entry_id()}
        ask(broker, "POST", f"{ADMIN}/reset/subscription/s/resetcursor", position)
        ask(broker, "POST", f"{ADMIN}/clear/subscription/s/skip_all")
        ask(broker, "PUT", f"{ADMIN}/pause/subscription/s/pause")
        broker.kill()
        client.close()
        broker.start()
        backlog = {}
        for name in ids:
            ask(broker, "GET", f"{ADMIN}/{name}/subscriptions")
            stats = ask(broker, "GET", f"{ADMIN}/{name}/stats?getPreciseBacklog=true")
            backlog[name] = stats["subscriptions"]["s"]["msgBacklog"]
        assert backlog == {
            "seek": 3,
            "skip": 6,
            "reset": 4,
            "clear": 0,
            "pause": MESSAGES,
            "receipts": MESSAGES,  # received, and not acknowledged
        }
        client = new_client(broker.service_url)
        paused = client.subscribe("pause", "s", pulsar.ConsumerType.Shared)
        with pytest.raises(pulsar.Timeout):
            paused.receive(300)
        (why,) = ask(broker, "GET", f"{ADMIN}/pause/subscription/s/standstill")
        assert why["reasons"][0]["code"] == "PAUSED"
        ask(broker, "DELETE", f"{ADMIN}/pause/subscription/s/pause")
        assert paused.receive(30_000).data() == b"0"
        client.close()
