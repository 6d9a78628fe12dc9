"""Interceptors: in order, and what they raise harms nobody."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from pulsar_py.client.producing.message_builder import OutgoingMessage
from pulsar_py.client.producing.producer_interceptor import (
    ProducerInterceptor,
    ProducerInterceptors,
)
from pulsar_py.common.message_id import MessageId

PRODUCER: Any = object()  # handed through


class Appending(ProducerInterceptor):
    def __init__(self, text: bytes) -> None:
        self.text = text
        self.seen: list[object] = []

    def before_send(self, producer: Any, message: OutgoingMessage) -> OutgoingMessage:
        return OutgoingMessage(message.content + self.text)

    def on_send_acknowledgement(
        self,
        producer: Any,
        message: OutgoingMessage,
        message_id: MessageId | None,
        error: Exception | None,
    ) -> None:
        self.seen.append((message.content, message_id, error))

    def on_partitions_change(self, topic: str, partitions_count: int) -> None:
        self.seen.append((topic, partitions_count))

    def close(self) -> None:
        self.seen.append("closed")


class Choosy(Appending):
    def eligible(self, message: OutgoingMessage) -> bool:
        return message.content.startswith(b"!")


class Failing(ProducerInterceptor):
    def eligible(self, message: OutgoingMessage) -> bool:
        raise ValueError("eligible")

    def on_partitions_change(self, topic: str, partitions_count: int) -> None:
        raise ValueError("partitions")

    def close(self) -> None:
        raise ValueError("close")


def test_each_gets_what_the_one_before_made() -> None:
    chain = ProducerInterceptors([Appending(b"1"), Choosy(b"2"), Appending(b"3")])
    assert chain.before_send(PRODUCER, OutgoingMessage(b"x")).content == b"x13"
    assert chain.before_send(PRODUCER, OutgoingMessage(b"!")).content == b"!123"


def test_what_one_raises_is_logged_and_the_others_go_on(caplog: pytest.LogCaptureFixture) -> None:
    last = Appending(b"1")
    chain = ProducerInterceptors([Failing(), last])
    with caplog.at_level(logging.ERROR):
        message = chain.before_send(PRODUCER, OutgoingMessage(b"x"))
        chain.on_send_acknowledgement(PRODUCER, message, MessageId(1, 2), None)
        chain.on_partitions_change("t", 3)
        chain.close()
    assert last.seen == [(b"x1", MessageId(1, 2), None), ("t", 3), "closed"]
    assert len(caplog.records) == 4


def test_the_usual_one_does_nothing() -> None:
    plain = ProducerInterceptor()
    message = OutgoingMessage(b"x")
    assert plain.eligible(message)
    assert plain.before_send(PRODUCER, message) is message
    plain.on_send_acknowledgement(PRODUCER, message, None, None)
    plain.on_partitions_change("t", 1)
    plain.close()


def test_none_at_all_is_false() -> None:
    assert not ProducerInterceptors([])
    assert ProducerInterceptors([ProducerInterceptor()])
