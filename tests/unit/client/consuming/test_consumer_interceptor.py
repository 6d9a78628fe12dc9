from __future__ import annotations

import logging

import pytest

from pulsar_py.client.consuming.consumer_interceptor import (
    ConsumerInterceptor,
    ConsumerInterceptors,
    tell_partitions_change,
)
from pulsar_py.client.messages.message import Message
from pulsar_py.common.message_id import MessageId
from tests.unit.client.entries import message


class Adding(ConsumerInterceptor):
    def __init__(self, text: bytes, calls: list[object]) -> None:
        self.text = text
        self.calls = calls

    def before_consume(self, consumer: object, message: Message) -> Message:
        return Message(message.entry, -1, None, message.data() + self.text)

    def on_acknowledge(self, *news: object) -> None:
        self.calls.append((self.text, *news))

    def close(self) -> None:
        self.calls.append((self.text, "close"))


class Broken(ConsumerInterceptor):
    def before_consume(self, consumer: object, message: Message) -> Message:
        raise RuntimeError("broken")

    def on_acknowledge(self, *news: object) -> None:
        raise RuntimeError("broken")


def test_they_run_in_order_and_survive_each_other(caplog: pytest.LogCaptureFixture) -> None:
    calls: list[object] = []
    chain = ConsumerInterceptors("it", [Adding(b"1", calls), Broken(), Adding(b"2", calls)])
    with caplog.at_level(logging.ERROR):
        assert chain.before_consume(message(b"x")).data() == b"x12"
        chain.on_acknowledge(MessageId(1, 1), None)
    chain.close()
    assert calls == [
        (b"1", "it", MessageId(1, 1), None),
        (b"2", "it", MessageId(1, 1), None),
        (b"1", "close"),
        (b"2", "close"),
    ]
    assert len(caplog.records) == 2


def test_the_rest_does_nothing_by_default() -> None:
    chain = ConsumerInterceptors(None, [ConsumerInterceptor()])
    assert chain
    assert not ConsumerInterceptors(None, [])
    found = message()
    assert chain.before_consume(found) is found
    chain.on_acknowledge_cumulative(MessageId(1, 1), None)
    chain.on_negative_acks_send([(1, 1)])
    chain.on_ack_timeout_send([(1, 1)])
    tell_partitions_change([ConsumerInterceptor()], "t", 5)
