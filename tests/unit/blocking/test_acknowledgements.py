"""Acknowledgements go to the loop in groups, and nothing overtakes them."""

from __future__ import annotations

from collections.abc import Callable
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


class Loop:
    """Takes timers and what threads post; the test runs them."""

    def __init__(self) -> None:
        self.posted: list[Callable[[], None]] = []
        self.timers: list[tuple[float, Callable[[], None]]] = []

    def call_later(self, seconds: float, callback: Callable[[], None]) -> SimpleNamespace:
        timer = (seconds, callback)
        self.timers.append(timer)
        return SimpleNamespace(cancel=lambda: self.timers.remove(timer))

    def run_timer(self) -> float:
        ((seconds, callback),) = self.timers
        self.timers.clear()
        callback()
        return seconds


def on_loop() -> tuple[Loop, Acknowledgements, list[list[str]]]:
    loop, told = Loop(), []
    thread = SimpleNamespace(loop=loop, post=loop.posted.append)
    return loop, Acknowledgements(thread, SimpleNamespace(acknowledge_all=told.append)), told


def acknowledge(acknowledgements: Acknowledgements, message: str) -> None:
    """As a thread does; see `ConsumerCalls.acknowledge`."""
    acknowledgements.messages.append(message)
    if not acknowledgements.is_due:
        acknowledgements.wake()


def test_after_a_while_the_next_one_takes_them_along() -> None:
    loop, acknowledgements, told = on_loop()
    acknowledge(acknowledgements, "first")
    loop.posted.pop()()
    acknowledge(acknowledgements, "second")
    assert (loop.posted, told) == ([], [["first"]]), "it waits for its time"
    loop.run_timer()
    assert told == [["first"]], "and for the next one"
    acknowledge(acknowledgements, "third")
    acknowledge(acknowledgements, "fourth")
    (wake_up,) = loop.posted
    wake_up()
    assert told[1:] == [["second", "third", "fourth"]]
    assert len(loop.timers) == 1


def test_without_a_next_one_they_go_by_themselves_soon() -> None:
    loop, acknowledgements, told = on_loop()
    acknowledge(acknowledgements, "first")
    loop.posted.pop()()
    acknowledge(acknowledgements, "second")
    assert loop.run_timer() + loop.run_timer() <= 0.025
    assert told == [["first"], ["second"]]
    loop.run_timer()
    assert loop.timers == [], "nothing waits"
    acknowledge(acknowledgements, "third")
    assert len(loop.posted) == 1, "so it wakes the loop"


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
