"""Rates as users of the official client meet them: things take longer, and nothing fails."""

from __future__ import annotations

import json
import time
import urllib.request

import pulsar

from pulsar_py.testing.broker_thread import BrokerThread

NAMESPACE = "/admin/v2/namespaces/public/default"


def post(broker: BrokerThread, path: str, body: object) -> None:
    request = urllib.request.Request(
        broker.web_service_url + path,
        json.dumps(body).encode(),
        {"Content-Type": "application/json"},
        method="POST",
    )
    with urllib.request.urlopen(request) as response:
        assert response.status == 204


def test_publishing_and_dispatch_take_their_time() -> None:
    with BrokerThread() as broker:
        rate = {"publishThrottlingRateInMsg": 40}
        post(broker, NAMESPACE + "/publishRate", rate)
        post(broker, NAMESPACE + "/dispatchRate", {"dispatchThrottlingRateInMsg": 40})
        client = pulsar.Client(
            broker.service_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
        )
        consumer = client.subscribe("t", "s", pulsar.ConsumerType.Shared)
        producer = client.create_producer("t")
        free = client.create_producer("non-persistent://public/default/u")
        outcomes: list[pulsar.Result] = []
        started = time.monotonic()
        for number in range(80):
            producer.send_async(b"%d" % number, lambda result, _: outcomes.append(result))
        free.send(b"at once")
        assert time.monotonic() - started < 0.9
        received = [consumer.receive(30_000) for _ in range(80)]
        assert time.monotonic() - started >= 0.9
        for message in received:
            consumer.acknowledge(message)
        producer.flush()
        assert outcomes == [pulsar.Result.Ok] * 80
        assert [int(message.data()) for message in received] == list(range(80))
        client.close()
