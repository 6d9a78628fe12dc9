"""Results of `send_nowait`: waiting, errors, callbacks, logs of failures that nobody asked for."""

from __future__ import annotations

import logging
import threading
import time

import pytest

from pulsar_py import blocking


def test_a_result_is_waited_for(client: blocking.Client, topic: str) -> None:
    producer = client.create_producer(topic)
    result = producer.send_nowait(b"x")
    assert str(result.result(5)) == str(result.result())
    assert result.done()
    assert result.exception() is None
    assert repr(result) == f"blocking.SendResult({result.result()})"


def test_a_callback_gets_the_result(client: blocking.Client, topic: str) -> None:
    producer = client.create_producer(topic)
    got: list[blocking.SendResult] = []
    called = threading.Event()

    def on_done(result: blocking.SendResult) -> None:
        got.append(result)
        called.set()

    result = producer.send_nowait(b"x")
    result.add_done_callback(on_done)
    assert called.wait(30)
    assert got == [result]
    called.clear()
    result.add_done_callback(on_done)
    assert called.wait(30)


def test_a_message_that_is_refused_later_raises_in_result_and_flush(
    client: blocking.Client, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    producer = client.create_producer(topic)
    result = producer.send_nowait(bytes(6 << 20))
    with pytest.raises(blocking.MessageTooBigError):
        result.result(5)
    assert isinstance(result.exception(), blocking.MessageTooBigError)
    with pytest.raises(blocking.MessageTooBigError):
        producer.flush()
    producer.flush()  # told once
    caplog.clear()
    with caplog.at_level(logging.WARNING, "pulsar_py"):
        producer.send_nowait(bytes(6 << 20))
        with pytest.raises(blocking.MessageTooBigError):
            producer.flush()
    assert "message not sent" in caplog.text


def test_waiting_ends_with_the_time_limit(client: blocking.Client, topic: str) -> None:
    producer = client.create_producer(
        topic, batching_enabled=True, batching_max_publish_delay_ms=60_000
    )
    result = producer.send_nowait(b"x")
    begun = time.monotonic()
    with pytest.raises(TimeoutError):
        result.result(0.02)
    with pytest.raises(TimeoutError), blocking.timeout(0.02):
        result.result()
    assert time.monotonic() - begun < 5
    assert not result.done()
    producer.flush()
    assert result.done()
