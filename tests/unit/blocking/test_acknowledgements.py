"""Acknowledgements go to the loop in groups, and nothing overtakes them."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from pulsar_py import blocking
from pulsar_py.blocking.acknowledgements import Acknowledgements
from tests.unit.blocking.test_prefetch import fill, numbers


def test_many_are_few_wake_ups_and_all_arrive(
    client: blocking.Client, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    consumer = client.subscribe(topic, "s")
    fill(client, topic, 1000)
    messages = [consumer.receive(30_000) for _ in range(1000)]
    calls = []
    on_due = Acknowledgements._on_due
    monkeypatch.setattr(Acknowledgements, "_on_due", lambda self: (calls.append(1), on_due(self)))
    for message in messages:
        consumer.acknowledge(message)
    assert len(calls) < 100
    consumer.close()
    again = client.subscribe(topic, "s")
    with pytest.raises(blocking.ClientTimeoutError):
        again.receive(200)


def add(acknowledgements: Acknowledgements, message: blocking.Message) -> None:
    """As a thread does while they are due."""
    acknowledgements.messages.append(message)


def test_a_few_wait_for_their_time_and_many_do_not(client: blocking.Client, topic: str) -> None:
    consumer = client.subscribe(topic, "s")
    fill(client, topic, 100)
    messages = [consumer.receive(30_000) for _ in range(100)]
    told = []
    acknowledgements = Acknowledgements(
        client._shared.thread, SimpleNamespace(acknowledge_all=told.append)
    )
    acknowledgements.is_due = True  # its time is not now
    for message in messages[:63]:
        add(acknowledgements, message)
    acknowledgements.take_many()
    assert told == []
    add(acknowledgements, messages[63])
    acknowledgements.take_many()
    assert told == [messages[:64]]
    acknowledgements.take()
    assert len(told) == 1, "each is told once"
    add(acknowledgements, messages[64])
    acknowledgements.take()
    assert told[1:] == [messages[64:65]]


def test_closing_the_client_sends_them(session_pulsar_broker: object, topic: str) -> None:
    url = session_pulsar_broker.service_url
    with blocking.Client(url) as client:
        consumer = client.subscribe(topic, "s")
        fill(client, topic, 10)
        for _ in range(5):
            consumer.acknowledge(consumer.receive(30_000))
    with blocking.Client(url) as client:
        again = client.subscribe(topic, "s", batch_index_ack_enabled=True)
        assert numbers(again, 10)[:1] == [0]  # of a batch all come again, unless all were acked
    with blocking.Client(url) as client:
        consumer = client.subscribe(topic, "s")
        for _ in range(10):
            consumer.acknowledge(consumer.receive(30_000))
    with blocking.Client(url) as client:
        again = client.subscribe(topic, "s")
        with pytest.raises(blocking.ClientTimeoutError):
            again.receive(200)


def test_with_receipts_the_broker_has_confirmed_it(client: blocking.Client, topic: str) -> None:
    consumer = client.subscribe(topic, "s", ack_receipt_enabled=True)
    fill(client, topic, 1)
    message = consumer.receive(30_000)
    consumer.acknowledge(message)
    consumer.acknowledge([message.message_id()])
    assert consumer.statistics().total_acks_sent >= 1


def test_a_closed_consumer_acknowledges_nothing(client: blocking.Client, topic: str) -> None:
    consumer = client.subscribe(topic, "s")
    fill(client, topic, 1)
    message = consumer.receive(30_000)
    consumer.close()
    with pytest.raises(blocking.AlreadyClosedError):
        consumer.acknowledge(message)
