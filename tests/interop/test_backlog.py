"""The backlog of a subscription, as official clients leave it."""

from __future__ import annotations

import json
import urllib.request

import pulsar

from pulsar_py.testing import BrokerThread

TOPIC = "persistent://public/default/analyzed"


def test_an_analysis_counts_the_messages_of_batches_that_wait() -> None:
    """Apache Pulsar 4.2.4 answers 20 where 17 messages wait: it counts batches as a whole."""
    with BrokerThread(config={"acknowledgmentAtBatchIndexLevelEnabled": True}) as broker:
        client = pulsar.Client(broker.service_url)
        path = TOPIC.replace("://", "/")
        url = f"{broker.web_service_url}/admin/v2/{path}/subscription/s/analyzeBacklog"

        def analyzed() -> tuple[int, int]:
            with urllib.request.urlopen(urllib.request.Request(url, method="POST")) as answer:
                found = json.loads(answer.read())
            return found["entries"], found["messages"]

        def subscribe() -> pulsar.Consumer:
            kind = pulsar.ConsumerType.Shared
            return client.subscribe(TOPIC, "s", kind, batch_index_ack_enabled=True)

        consumer = subscribe()
        producer = client.create_producer(
            TOPIC,
            batching_enabled=True,
            batching_max_messages=10,
            batching_max_publish_delay_ms=10_000,
        )
        for number in range(20):
            producer.send_async(b"%d" % number, lambda *_: None)
        producer.flush()
        messages = [consumer.receive(30_000) for _ in range(20)]
        assert analyzed() == (2, 20)
        for place in (1, 4, 7):
            consumer.acknowledge(messages[place])
        consumer.close()  # sends the acknowledgements, and waits
        assert analyzed() == (2, 17)
        consumer = subscribe()
        messages = [consumer.receive(30_000) for _ in range(17)]
        for message in messages[7:16]:
            consumer.acknowledge(message)
        consumer.close()
        assert analyzed() == (2, 8)
        consumer = subscribe()
        messages = [consumer.receive(30_000) for _ in range(8)]
        consumer.acknowledge(messages[7])
        consumer.close()
        assert analyzed() == (1, 7)
        client.close()
