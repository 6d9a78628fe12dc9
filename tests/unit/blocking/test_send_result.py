"""Results of `send_nowait`: waiting, errors, callbacks, logs of failures that nobody asked for."""

from __future__ import annotations

import logging
import threading
import time

import pytest

from pulsar_py import blocking
from pulsar_py.blocking.send_result import SendRun
from pulsar_py.client.producing.send_result import SendCompletion
from pulsar_py.common.errors import MessageTooBigError


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


class NoWay:
    """Nobody waits here."""

    def observe(self, observe: object) -> None:
        """Not called."""
        raise AssertionError(observe)

    def add_observer(self, result: object, observer: object) -> None:
        """Not called."""
        raise AssertionError(result, observer)


def test_a_run_knows_the_entry_of_each_message() -> None:
    run = SendRun(NoWay())
    first, second, alone = SendCompletion(), SendCompletion(), SendCompletion()
    assert run.find(0) is None
    run.submitted([(first, 7, 3), (second, 0, 2)])
    run.submitted([(alone, -1, 1)])
    assert [run.find(place) for place in range(7)] == [
        (first, 7), (first, 8), (first, 9), (second, 0), (second, 1), (alone, -1), None
    ]  # fmt: skip


def test_observers_are_called_when_their_own_message_is_done() -> None:
    run = SendRun(NoWay())
    done: list[str] = []
    for place, name in ((0, "a"), (2, "b"), (2, "c"), (3, "refused")):
        run.observe(place, lambda name=name: done.append(name))
    first, second = SendCompletion(), SendCompletion()
    run.submitted([(first, 0, 2)])
    run.submitted([(second, -1, 1)])
    run.observe(1, lambda: done.append("later"))
    assert done == []
    second.confirm(1, 1)
    assert done == ["b", "c"]
    assert run.refused(MessageTooBigError("too big"))
    assert done == ["b", "c", "refused"]
    assert not run.refused(MessageTooBigError("of which nobody hears"))
    first.confirm(1, 2)
    assert done == ["b", "c", "refused", "a", "later"]


def test_results_of_a_run_that_was_taken_in_parts(client: blocking.Client, topic: str) -> None:
    producer = client.create_producer(
        topic, batching_enabled=True, batching_max_messages=7, max_pending_messages=50,
        block_if_queue_full=True,
    )  # fmt: skip
    results = [producer.send_nowait(b"%d" % number) for number in range(400)]
    heard: list[int] = []
    for number in (0, 100, 399):
        results[number].add_done_callback(lambda _, number=number: heard.append(number))
    producer.flush()
    ids = [each.result(30) for each in results]
    assert ids == sorted(ids)
    assert len({(each.entry_id, each.batch_index) for each in ids}) == 400
    assert all(each.done() and each.exception() is None for each in results)
    assert sorted(heard) == [0, 100, 399]
