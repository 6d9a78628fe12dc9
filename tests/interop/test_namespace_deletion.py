"""A namespace goes while official clients are connected to its topics."""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from typing import Any

import pulsar
import pytest

from pulsar_py.testing import BrokerThread
from tests.interop.conftest import new_client

NAMESPACE = "/admin/v2/namespaces/public/gone"


def ask(broker: BrokerThread, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    """Status and JSON of an answer."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(broker.web_service_url + path, data=data, method=method)
    request.add_header("Content-Type", "application/json")
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            text = response.read()
            return response.status, json.loads(text) if text else None
    except urllib.error.HTTPError as error:
        return error.code, None


def test_a_forced_deletion_takes_topics_with_clients_and_nothing_comes_back() -> None:
    with BrokerThread(config={"forceDeleteNamespaceAllowed": True}) as broker:
        ask(broker, "PUT", NAMESPACE)
        ask(broker, "PUT", "/admin/v2/persistent/public/gone/parts/partitions", 3)
        client = new_client(broker.service_url, operation_timeout_seconds=5)
        topics = [
            "persistent://public/gone/plain",
            "persistent://public/gone/parts",
            "non-persistent://public/gone/volatile",
        ]
        consumers = [
            client.subscribe(topic, f"{kind.name}", kind)
            for topic in topics
            for kind in (pulsar.ConsumerType.Shared, pulsar.ConsumerType.Failover)
        ]
        reader = client.create_reader(topics[0], pulsar.MessageId.earliest)
        producers = [client.create_producer(topic, send_timeout_millis=2000) for topic in topics]
        for producer in producers:
            producer.send(b"before")
        assert reader.read_next(30_000).data() == b"before"
        assert ask(broker, "DELETE", NAMESPACE)[0] == 409
        producers[0].send(b"still there")
        is_over = threading.Event()
        is_published = threading.Event()

        def note(result: pulsar.Result, _: pulsar.MessageId) -> None:
            if result == pulsar.Result.Ok:
                is_published.set()

        def publish() -> None:
            """Under load: messages without an answer while the namespace goes."""
            while not is_over.wait(0.002):
                for producer in producers:
                    producer.send_async(b"x", note)

        feeder = threading.Thread(target=publish)
        feeder.start()
        try:
            assert is_published.wait(30)
            assert ask(broker, "DELETE", NAMESPACE + "?force=true")[0] == 204
        finally:
            is_over.set()
            feeder.join()
        for call in (NAMESPACE, NAMESPACE + "/topics", "/admin/v2/persistent/public/gone"):
            assert ask(broker, "GET", call)[0] == 404, call
        for producer in producers:
            with pytest.raises(pulsar.PulsarException):
                producer.send(b"after")
        with pytest.raises(pulsar.PulsarException):
            client.subscribe(topics[0], "new")
        # Nobody who reconnects has made anything of it again, and a new one is empty.
        assert ask(broker, "GET", NAMESPACE)[0] == 404
        assert len(consumers) == 6
        client.close()
        assert ask(broker, "PUT", NAMESPACE)[0] == 204
        assert ask(broker, "GET", NAMESPACE + "/topics") == (200, [])
        assert ask(broker, "GET", "/admin/v2/persistent/public/gone/partitioned") == (200, [])
        client = new_client(broker.service_url)
        first = client.subscribe(topics[0], "s", initial_position=pulsar.InitialPosition.Earliest)
        with pytest.raises(pulsar.Timeout):
            first.receive(200)
        client.close()
