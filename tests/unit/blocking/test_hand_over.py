"""Messages go to the loop in bursts, and threads wait where there is no room."""

from __future__ import annotations

import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import Any, TypeVar

import pytest

from pulsar_py import blocking
from pulsar_py.blocking.hand_over import HandOver
from pulsar_py.blocking.send_result import SendRun
from pulsar_py.client.brokers.direct_socket import DirectSocket
from pulsar_py.client.producing.entry_encoder import EntryEncoder
from pulsar_py.common.buffer import Buffer

T = TypeVar("T")


def test_a_burst_is_few_wake_ups(
    client: blocking.Client, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    producer = client.create_producer(topic, batching_enabled=True, max_pending_messages=0)
    producer.send(b"x")
    taken = Counter()
    on_due = HandOver._on_due
    monkeypatch.setattr(HandOver, "_on_due", lambda self: (taken.update(["due"]), on_due(self)))
    for _ in range(5000):
        producer.send_nowait(b"x")
    producer.flush()
    assert 0 < taken["due"] < 500  # and not one for each message


def test_a_full_producer_refuses_or_waits(client: blocking.Client, topic: str) -> None:
    options = {"batching_enabled": True, "batching_max_publish_delay_ms": 60_000}
    refusing = client.create_producer(topic, max_pending_messages=10, **options)
    for _ in range(10):
        refusing.send_nowait(b"x")
    with pytest.raises(blocking.ProducerQueueFullError, match="10 messages have no receipt"):
        refusing.send_nowait(b"x")
    refusing.flush()
    refusing.send_nowait(b"x")

    waiting = client.create_producer(
        topic, max_pending_messages=10, block_if_queue_full=True, **options
    )
    for _ in range(10):
        waiting.send_nowait(b"x")
    with pytest.raises(TimeoutError), blocking.timeout(0.02):
        waiting.send_nowait(b"x")
    threading.Timer(0.02, waiting.flush).start()
    with blocking.timeout(30):
        assert waiting.send_nowait(b"x") is not None


def test_messages_of_all_kinds_keep_their_order(client: blocking.Client, topic: str) -> None:
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(topic, max_pending_messages=16, block_if_queue_full=True)
    results = []
    for number in range(400):
        properties = {"a": "b"} if number % 50 == 49 else None
        results.append(producer.send_nowait(b"%d" % number, properties))
    producer.flush()
    assert [int(consumer.receive(30_000).data()) for _ in results] == list(range(400))
    ids = [each.result() for each in results]
    assert ids == sorted(ids)
    assert len(set(ids)) == 400


def test_what_the_memory_has_no_room_for_goes_later(
    session_pulsar_broker: object, topic: str
) -> None:
    url = session_pulsar_broker.service_url
    with blocking.Client(url, memory_limit_bytes=100_000) as client:
        consumer = client.subscribe(topic, "s")
        producer = client.create_producer(topic, block_if_queue_full=True)
        results = [producer.send_nowait(b"%5d" % number + bytes(9_995)) for number in range(300)]
        producer.flush()
        assert all(each.done() for each in results)
        assert [int(consumer.receive(30_000).data()[:5]) for _ in range(300)] == list(range(300))
        holding = client.create_producer(
            topic, batching_enabled=True, batching_max_publish_delay_ms=60_000
        )
        holding.send_nowait(bytes(90_000))
        holding.send_nowait(bytes(20_000))  # one message may exceed the limit
        with pytest.raises(blocking.MemoryBufferFullError):
            client.create_producer(topic).send(bytes(50_000))


def test_closing_sends_what_was_handed_over(client: blocking.Client, topic: str) -> None:
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(topic)
    for number in range(100):
        producer.send_nowait(b"%d" % number)
    producer.close()
    assert [int(consumer.receive(30_000).data()) for _ in range(100)] == list(range(100))


def test_closing_the_client_sends_it_too(session_pulsar_broker: object, topic: str) -> None:
    url = session_pulsar_broker.service_url
    with blocking.Client(url) as client:
        client.subscribe(topic, "s")
        producer = client.create_producer(topic)
        results = [producer.send_nowait(b"x") for _ in range(100)]
    assert all(each.exception() is None for each in results)
    with pytest.raises(blocking.AlreadyClosedError):
        producer.send_nowait(b"x")


@pytest.fixture
def writers(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the threads that write to sockets without the loop."""
    names: list[str] = []
    send = DirectSocket.send

    def watched(self: DirectSocket, buffers: Sequence[Buffer]) -> bytes:
        names.append(threading.current_thread().name)
        return send(self, buffers)

    monkeypatch.setattr(DirectSocket, "send", watched)
    return names


def in_thread(work: Callable[[], T]) -> T:
    """The main thread may have handlers of signals, and does not write by itself then."""
    with ThreadPoolExecutor(1, thread_name_prefix="sender") as threads:
        return threads.submit(work).result(60)


def alone(producer: blocking.Producer, payload: bytes) -> blocking.SendResult:
    """A message that is sent when the loop has nothing to do."""
    time.sleep(0.01)
    return producer.send_nowait(payload)


def test_a_message_that_comes_alone_is_written_by_its_thread(
    client: blocking.Client, topic: str, writers: list[str]
) -> None:
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(topic)
    producer.send(b"first")  # with which the loop sets a timer
    writers.clear()

    def send() -> list[blocking.MessageId]:
        results = [alone(producer, b"%d" % number) for number in range(20)]
        return [*(each.result(30) for each in results), producer.send(b"20")]

    ids = in_thread(send)
    assert ids == sorted(ids)
    assert writers.count("sender_0") > 10  # the loop may be at work when one of them comes
    received = [consumer.receive(30_000).data() for _ in range(22)]
    assert received == [b"first", *(b"%d" % number for number in range(21))]
    assert producer.last_sequence_id() == 21


@pytest.mark.parametrize("taken_bytes", [0, 1, 30])
def test_what_the_socket_does_not_take_the_loop_writes(
    client: blocking.Client, topic: str, monkeypatch: pytest.MonkeyPatch, taken_bytes: int
) -> None:
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(topic)
    producer.send(b"first")
    send = DirectSocket.send
    monkeypatch.setattr(
        DirectSocket,
        "send",
        lambda self, buffers: send(self, [buffers[0][:taken_bytes]]) + buffers[0][taken_bytes:],
    )
    results = in_thread(lambda: [alone(producer, b"%d" % number) for number in range(10)])
    assert [each.result(30).entry_id for each in results] == list(range(1, 11))
    assert [consumer.receive(30_000).data() for _ in range(11)][1:] == [
        b"%d" % number for number in range(10)
    ]


@pytest.mark.parametrize("is_written", [True, False])
def test_a_send_that_ctrl_c_interrupts_is_repeated_on_a_new_connection(
    client: blocking.Client, topic: str, monkeypatch: pytest.MonkeyPatch, *, is_written: bool
) -> None:
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(topic)
    producer.send(b"first")
    send = DirectSocket.send
    interrupts = [KeyboardInterrupt()]

    def interrupted(self: DirectSocket, buffers: Sequence[Buffer]) -> bytes:
        rest = send(self, buffers) if is_written or not interrupts else b""
        if interrupts:
            raise interrupts.pop()
        return rest

    monkeypatch.setattr(DirectSocket, "send", interrupted)

    def interrupt() -> None:
        while interrupts:
            alone(producer, b"interrupted")

    with pytest.raises(KeyboardInterrupt):
        in_thread(interrupt)
    results = [producer.send_nowait(b"%d" % number) for number in range(5)]
    producer.flush()
    assert all(each.exception() is None for each in results)
    received = [consumer.receive(30_000).data()]
    while received[-1] != b"4":
        received.append(consumer.receive(30_000).data())
    in_order = list(dict.fromkeys(received))  # some come again: they were not acknowledged
    assert in_order == [b"first", b"interrupted", b"0", b"1", b"2", b"3", b"4"]
    assert producer._inner.pending_count() == 0
    assert client._inner.context.memory_limit.current_bytes == 0


def test_a_send_that_ctrl_c_interrupts_before_leaves_nothing(
    client: blocking.Client, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    producer = client.create_producer(topic, max_pending_messages=1)
    producer.send(b"first")
    encode = EntryEncoder.encode_plain
    interrupts = [KeyboardInterrupt()]

    def interrupted(self: EntryEncoder, *arguments: Any) -> Any:
        if interrupts and threading.current_thread().name == "sender_0":
            raise interrupts.pop()
        return encode(self, *arguments)

    monkeypatch.setattr(EntryEncoder, "encode_plain", interrupted)

    def interrupt() -> None:
        while interrupts:
            alone(producer, b"x").result(30)

    with pytest.raises(KeyboardInterrupt):
        in_thread(interrupt)
    assert producer._inner.pending_count() == 0
    assert client._inner.context.memory_limit.current_bytes == 0
    in_thread(lambda: alone(producer, b"last").result(30))


def test_a_message_goes_out_though_ctrl_c_interrupted_the_wake_up_for_one_before(
    client: blocking.Client, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    producer = client.create_producer(topic)
    loop = client._thread.loop
    wake = loop.call_soon_threadsafe
    interrupts = [KeyboardInterrupt()]

    def interrupted(*arguments: Any) -> object:
        if interrupts:
            raise interrupts.pop()
        return wake(*arguments)

    monkeypatch.setattr(loop, "call_soon_threadsafe", interrupted)
    with pytest.raises(KeyboardInterrupt):
        producer.send_nowait(b"x", {"by": "the loop"})
    done = threading.Event()
    producer.send_nowait(b"x", {"by": "the loop"}).add_done_callback(lambda _: done.set())
    assert done.wait(10)


def test_a_finalizer_may_send_in_the_midst_of_a_send_but_not_wait(
    client: blocking.Client, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(topic)
    producer.send(b"first")
    encode = EntryEncoder.encode_plain
    results: list[blocking.SendResult] = []
    errors: list[Exception] = []

    def interrupted(self: EntryEncoder, *arguments: Any) -> Any:
        if not results and threading.current_thread().name == "sender_0":
            results.append(producer.send_nowait(b"from the finalizer"))
            for wait in (lambda: producer.send(b"x"), results[0].result, producer.close):
                try:
                    wait()
                except blocking.ClientError as error:
                    errors.append(error)
        return encode(self, *arguments)

    monkeypatch.setattr(EntryEncoder, "encode_plain", interrupted)

    def send() -> int:
        sent_count = 0
        while not results:
            sent_count += 1
            alone(producer, b"x").result(30)
        return sent_count

    sent_count = in_thread(send)
    assert [str(each)[:31] for each in errors] == ["a blocking call in a finalizer "] * 3
    assert results[0].result(30) is not None
    received = [consumer.receive(30_000).data() for _ in range(sent_count + 2)]
    assert received == [b"first", *[b"x"] * sent_count, b"from the finalizer"]


def once(interrupt: Callable[[], object], function: Callable[..., T]) -> Callable[..., T]:
    """The function, whose first call is interrupted at its beginning."""
    interrupts = [interrupt]

    def interrupted(*arguments: Any) -> T:
        if interrupts and threading.current_thread() is threading.main_thread():
            interrupts.pop()()
        return function(*arguments)

    return interrupted


@pytest.mark.parametrize("place", ["count", "callback", "wake"])
def test_a_handler_of_a_signal_may_wait_where_it_interrupts_a_send(
    client: blocking.Client, topic: str, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """As one does that flushes or closes before the process ends."""
    producer = client.create_producer(topic, max_pending_messages=1, block_if_queue_full=True)
    inner, loop = producer._inner, client._thread.loop
    calls = []

    def handle() -> None:
        calls.append(place)
        with blocking.timeout(10):
            producer.flush()
            producer.send(b"from the handler")

    if place == "count":
        monkeypatch.setattr(inner, "pending_count", once(handle, inner.pending_count))
    elif place == "wake":
        wake = loop.call_soon_threadsafe
        monkeypatch.setattr(loop, "call_soon_threadsafe", once(handle, wake))
    else:
        monkeypatch.setattr(SendRun, "observe", once(handle, SendRun.observe))
    done = threading.Event()
    for _ in range(3):
        producer.send_nowait(b"x", {"by": "the loop"}).add_done_callback(lambda _: done.set())
    assert calls == ([] if place == "callback" else [place])  # callbacks are the loop's
    assert done.wait(10)


def test_handlers_of_signals_may_wait_whatever_they_interrupt(
    client: blocking.Client, topic: str
) -> None:
    producer = client.create_producer(topic, max_pending_messages=2, block_if_queue_full=True)
    chance = Random(7)
    handled_count = 0

    def handle(*_: object) -> None:
        nonlocal handled_count
        with blocking.timeout(10):
            producer.flush()
            producer.send(b"from a handler")
        handled_count += 1
        signal.setitimer(signal.ITIMER_REAL, chance.uniform(0.0002, 0.001))

    handler = signal.signal(signal.SIGALRM, handle)
    sent_count = 0
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.001)
        with blocking.timeout(60):
            while handled_count < 300:
                producer.send_nowait(b"x").add_done_callback(lambda _: None)
                sent_count += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
    producer.flush()
    assert producer.last_sequence_id() + 1 == sent_count + handled_count


def test_a_message_keeps_its_place_where_a_handler_of_a_signal_sends(
    client: blocking.Client, topic: str
) -> None:
    """Their results are not those of each other."""
    producer = client.create_producer(topic, max_pending_messages=0)
    chance = Random(7)
    handled: list[blocking.SendResult] = []

    def handle(*_: object) -> None:
        handled.append(producer.send_nowait(b"from a handler"))
        signal.setitimer(signal.ITIMER_REAL, chance.uniform(0.0001, 0.0005))

    handler = signal.signal(signal.SIGALRM, handle)
    results = []
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.001)
        while len(handled) < 300:
            results.append(producer.send_nowait(b"x"))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
    ids = [each.result(30) for each in (*results, *handled)]
    assert len(set(ids)) == len(ids)


def test_what_waits_for_memory_counts_as_pending(session_pulsar_broker: object, topic: str) -> None:
    url = session_pulsar_broker.service_url
    with blocking.Client(url, memory_limit_bytes=1000) as client:
        holding = client.create_producer(
            topic, batching_enabled=True, batching_max_publish_delay_ms=60_000
        )
        holding.send_nowait(bytes(1000))
        producer = client.create_producer(topic, max_pending_messages=10, block_if_queue_full=True)
        results = []
        for _ in range(10):
            results.append(producer.send_nowait(b"x"))
            time.sleep(0.005)  # the loop takes each
        with pytest.raises(TimeoutError), blocking.timeout(0.02):
            producer.send_nowait(b"x")
        holding.flush()
        producer.flush()
        assert all(each.exception() is None for each in results)
        assert producer.send_nowait(b"x").result(30) is not None


def test_callbacks_run_in_the_loop_whoever_sent(client: blocking.Client, topic: str) -> None:
    producer = client.create_producer(topic)
    producer.send(b"first")
    names: list[str] = []
    called = threading.Event()

    def call(result: blocking.SendResult) -> None:
        names.append(threading.current_thread().name)
        if len(names) == 2:
            called.set()

    def send() -> None:
        alone(producer, b"x").add_done_callback(call)
        done = alone(producer, b"x")
        done.result(30)
        time.sleep(0.01)
        done.add_done_callback(call)

    in_thread(send)
    assert called.wait(30)
    assert names == ["pulsar_py blocking"] * 2
