"""Failover's events come to a thread, with the blocking consumer."""

from __future__ import annotations

import threading

from pulsar_py import blocking


def test_the_standby_hears_that_it_is_active(client: blocking.Client, topic: str) -> None:
    active = threading.Event()
    got = []

    class Listener(blocking.ConsumerEventListener):
        def became_active(self, consumer: object, partition_index: int) -> None:
            got.append((consumer, consumer.is_active, consumer.has_message_available()))
            active.set()

    failover = blocking.ConsumerType.Failover
    first = client.subscribe(topic, "s", consumer_type=failover, consumer_name="a")
    second = client.subscribe(
        topic, "s", consumer_type=failover, consumer_name="b", consumer_event_listener=Listener()
    )
    assert not active.is_set()
    first.close()
    assert active.wait(30)
    assert got == [(second, True, False)]
