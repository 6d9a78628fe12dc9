"""Parts hand over what they have, and live as long as somebody has them."""

from __future__ import annotations

import gc

from pulsar_py import blocking


def test_parts_are_known_while_they_live(client: blocking.Client, topic: str) -> None:
    producer = client.create_producer(topic)
    consumer = client.subscribe(topic, "s")
    reader = client.create_reader(topic)
    assert list(client._shared.parts) == [producer, consumer, reader]
    producer.close()
    del producer
    gc.collect()
    assert list(client._shared.parts) == [consumer, reader]
