"""Messages come to threads in runs; what nobody took is not lost, and not handed out twice."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from pulsar_py import blocking
from pulsar_py.blocking.prefetch import Prefetch
from pulsar_py.client.messages.message import Message
from pulsar_py.client.receiving.batch_receive import BatchCollector, ConsumerBatchReceivePolicy


def fill(client: blocking.Client, topic: str, count: int) -> None:
    producer = client.create_producer(topic, block_if_queue_full=True, batching_enabled=True)
    for number in range(count):
        producer.send_nowait(b"%d" % number)
    producer.close()


def numbers(consumer: blocking.Consumer, count: int) -> list[int]:
    return [int(consumer.receive(30_000).data()) for _ in range(count)]


def test_a_run_is_one_wake_up(
    client: blocking.Client, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetches = Counter()
    fetch = Prefetch._fetch
    monkeypatch.setattr(
        Prefetch, "_fetch", lambda self, left: (fetches.update(["f"]), fetch(self, left))
    )
    consumer = client.subscribe(topic, "s")
    fill(client, topic, 2000)
    assert numbers(consumer, 2000) == list(range(2000))
    assert fetches["f"] < 200


def test_messages_that_come_one_at_a_time_are_asked_for_once(
    client: blocking.Client, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Counter()
    want = Prefetch._want
    monkeypatch.setattr(
        Prefetch, "_want", lambda self, request: (asked.update(["w"]), want(self, request))
    )
    consumer, producer = client.subscribe(topic, "s"), client.create_producer(topic)
    for number in range(50):
        producer.send(b"%d" % number)
        assert numbers(consumer, 1) == [number]
    assert asked["w"] == 1


def wait_for_receivers(consumer: blocking.Consumer, count: int) -> None:
    """Return when so many of the loop's tasks wait for a message, and one thread does."""
    receiver = consumer._inner.receiver
    while receiver.waiters_count != count or len(consumer._prefetch._requests) != 1:
        time.sleep(0.001)


def test_a_thread_that_waits_gets_a_message_as_it_is_read(
    client: blocking.Client, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = []
    take_over = Prefetch._take_over
    monkeypatch.setattr(
        Prefetch, "_take_over", lambda self: taken.append(take_over(self)) or taken[-1]
    )
    consumer, producer = client.subscribe(topic, "s"), client.create_producer(topic)
    session = consumer._inner._session
    with ThreadPoolExecutor(1) as threads:
        for number in range(10):
            assert not session.is_awaited
            received = threads.submit(numbers, consumer, 1)
            wait_for_receivers(consumer, 1)
            assert session.is_awaited
            producer.send(b"%d" % number)
            assert received.result(30) == [number]
    assert taken == [True] * 10


def test_a_thread_that_waits_for_one_leaves_a_message_to_one_that_waits_for_several(
    client: blocking.Client, topic: str
) -> None:
    policy = blocking.ConsumerBatchReceivePolicy(1, -1, 30_000)
    consumer = client.subscribe(topic, "s", batch_receive_policy=policy)
    producer = client.create_producer(topic)
    with ThreadPoolExecutor(2) as threads:
        one = threads.submit(numbers, consumer, 1)
        wait_for_receivers(consumer, 1)
        several = threads.submit(consumer.batch_receive)
        wait_for_receivers(consumer, 2)
        producer.send(b"0")
        assert one.result(30) == [0]
        producer.send(b"1")
        assert [each.data() for each in several.result(30)] == [b"1"]


def test_what_nobody_takes_is_fed_no_further(client: blocking.Client, topic: str) -> None:
    consumer, producer = client.subscribe(topic, "s"), client.create_producer(topic)
    for number in range(30):
        producer.send(b"%d" % number)
        if not number:
            assert numbers(consumer, 1) == [0]
    reader = client.create_reader(topic, blocking.MessageId.latest)  # all that came before is here
    assert len(consumer._prefetch.messages) <= 10
    assert numbers(consumer, 29) == list(range(1, 30))
    reader.close()


def test_a_thread_that_is_fed_gives_up_and_is_fed_again(
    client: blocking.Client, topic: str
) -> None:
    consumer, producer = client.subscribe(topic, "s"), client.create_producer(topic)
    for number in range(5):
        producer.send(b"%d" % number)
        assert numbers(consumer, 1) == [number]
        with pytest.raises(blocking.ClientTimeoutError):
            consumer.receive(5)


def test_threads_share_a_consumer(client: blocking.Client, topic: str) -> None:
    consumer = client.subscribe(topic, "s", consumer_type=blocking.ConsumerType.Shared)
    fill(client, topic, 1000)
    got: list[int] = []

    def work() -> None:
        while True:
            try:
                message = consumer.receive(500)
            except blocking.ClientTimeoutError:
                return
            got.append(int(message.data()))
            consumer.acknowledge(message)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(got) == list(range(1000))


def test_a_seek_drops_what_was_brought_here(client: blocking.Client, topic: str) -> None:
    consumer = client.subscribe(topic, "s")
    fill(client, topic, 100)
    assert numbers(consumer, 10) == list(range(10))
    consumer.seek(blocking.MessageId.earliest)
    assert numbers(consumer, 100) == list(range(100))


def test_redelivery_brings_all_again_in_order(client: blocking.Client, topic: str) -> None:
    consumer = client.subscribe(topic, "s")
    fill(client, topic, 100)
    assert numbers(consumer, 10) == list(range(10))
    consumer.redeliver_unacknowledged_messages()
    assert numbers(consumer, 100) == list(range(100))


def test_a_lost_connection_repeats_nothing_that_a_reader_read(
    client: blocking.Client, topic: str
) -> None:
    reader = client.create_reader(topic, blocking.MessageId.earliest)
    fill(client, topic, 100)
    assert [int(reader.read_next(30_000).data()) for _ in range(10)] == list(range(10))
    pool = reader._context.pool
    reader._thread.call(lambda: pool.close_connections("for the test"))
    assert [int(reader.read_next(30_000).data()) for _ in range(90)] == list(range(10, 100))


def test_a_wait_that_was_given_up_loses_nothing(client: blocking.Client, topic: str) -> None:
    consumer = client.subscribe(topic, "s")
    with pytest.raises(blocking.ClientTimeoutError, match=r"no message within 0.01 s"):
        consumer.receive(10)
    with pytest.raises(TimeoutError) as raised, blocking.timeout(0.01):
        consumer.receive()
    assert not isinstance(raised.value, blocking.ClientTimeoutError)
    assert consumer.receive_nowait() is None
    fill(client, topic, 3)
    assert numbers(consumer, 3) == [0, 1, 2]


def test_a_thread_that_waits_hears_of_the_end(client: blocking.Client, topic: str) -> None:
    consumer = client.subscribe(topic, "s")
    threading.Timer(0.02, consumer.close).start()
    with pytest.raises(blocking.AlreadyClosedError):
        consumer.receive(5000)
    assert list(consumer) == []


def test_a_queue_of_one_brings_one(client: blocking.Client, topic: str) -> None:
    options = {"consumer_type": blocking.ConsumerType.Shared, "receiver_queue_size": 1}
    first = client.subscribe(topic, "s", **options)
    second = client.subscribe(topic, "s", **options)
    producer = client.create_producer(topic)
    for number in range(4):
        producer.send(b"%d" % number)
    time.sleep(0.05)
    # Nobody holds messages that the other could work on: one in hand, one in the queue.
    got = {int(each.receive(2000).data()) for each in (first, second, first, second)}
    assert got == {0, 1, 2, 3}


def test_a_batch_takes_what_is_here_first(client: blocking.Client, topic: str) -> None:
    policy = blocking.ConsumerBatchReceivePolicy(max_num_message=5, timeout_ms=1000)
    consumer = client.subscribe(topic, "s", batch_receive_policy=policy)
    fill(client, topic, 12)
    got = numbers(consumer, 1)
    while len(got) < 12:
        batch = consumer.batch_receive()
        assert 0 < len(batch) <= 5
        got += [int(each.data()) for each in batch]
    assert got == list(range(12))


def wait_for_messages(consumer: blocking.Consumer, count: int) -> None:
    end = time.monotonic() + 5
    while len(consumer._prefetch.messages) != count:
        assert time.monotonic() < end
        time.sleep(0.002)


def test_a_batch_begins_with_what_is_brought_here_while_it_is_asked_for(
    client: blocking.Client, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = blocking.ConsumerBatchReceivePolicy(1, -1, 30_000)
    consumer = client.subscribe(topic, "s", batch_receive_policy=policy)
    producer = client.create_producer(topic)
    producer.send(b"0")
    assert numbers(consumer, 1) == [0]  # from here on the loop feeds
    take = Prefetch.take_batch
    looks: list[int] = []

    def late(self: Prefetch, policy: ConsumerBatchReceivePolicy) -> list[Message]:
        looks.append(len(self.messages))
        if len(looks) > 1:
            return take(self, policy)
        producer.send(b"1")
        while not self.messages:
            time.sleep(0.001)
        producer.send(b"2")
        return []

    monkeypatch.setattr(Prefetch, "take_batch", late)
    batches = [consumer.batch_receive() for _ in range(2)]
    assert [[each.data() for each in batch] for batch in batches] == [[b"1"], [b"2"]]


def test_a_message_that_a_batch_has_no_room_for_keeps_its_place_while_others_come(
    client: blocking.Client, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = blocking.ConsumerBatchReceivePolicy(max_num_bytes=2, timeout_ms=1000)
    consumer = client.subscribe(topic, "s", batch_receive_policy=policy)
    producer = client.create_producer(topic, batching_enabled=False)
    producer.send(b"0")
    assert numbers(consumer, 1) == [0]
    for payload in (b"1", b"22"):
        producer.send(payload)
    wait_for_messages(consumer, 2)
    real, refusals = BatchCollector.has_room_for, Counter[bytes]()

    def room_for(collector: BatchCollector, message: Message) -> bool:
        has_room = real(collector, message)
        if not has_room:  # it is about to be put back
            refusals[message.data()] += 1
            producer.send(b"3")
            wait_for_messages(consumer, 1)
        return has_room

    monkeypatch.setattr(BatchCollector, "has_room_for", room_for)
    assert [each.data() for each in consumer.batch_receive()] == [b"1"]
    assert refusals == {b"22": 1}
    producer.send(b"4")
    assert numbers(consumer, 3) == [22, 3, 4]


def test_an_error_comes_after_the_messages_before_it(client: blocking.Client, topic: str) -> None:
    consumer = client.subscribe(topic, "s", receiver_queue_size=20)
    fill(client, topic, 5)
    assert numbers(consumer, 1) == [0]  # the others of the batch are here or decoded
    error = blocking.ServiceError("the consumer ended")
    consumer._thread.call(lambda: consumer._inner.receiver.fail(error))
    assert numbers(consumer, 4) == [1, 2, 3, 4]
    for _ in range(2):
        with pytest.raises(blocking.ServiceError, match="the consumer ended"):
            consumer.receive(1000)


class InterruptedList(list[Any]):
    """What the main thread calls is interrupted; no call, no interruption."""

    def __init__(self, handle: Callable[[], object]) -> None:
        self.interrupts = [handle]

    def append(self, value: object) -> None:
        if self.interrupts and threading.current_thread() is threading.main_thread():
            self.interrupts.pop()()
        super().append(value)


def test_a_handler_of_a_signal_may_wait_where_it_interrupts_a_wait(
    client: blocking.Client, topic: str
) -> None:
    """As one does that closes the consumer before the process ends."""
    consumer, producer = client.subscribe(topic, "s"), client.create_producer(topic)
    producer.send(b"0")
    assert numbers(consumer, 1) == [0]
    assert consumer._prefetch._is_feeding

    def handle() -> None:
        with blocking.timeout(5):
            producer.send(b"1")
            producer.send(b"2")

    consumer._prefetch._requests = InterruptedList(handle)
    timer = threading.Timer(0.05, handle)
    timer.start()
    assert numbers(consumer, 2) == [1, 2]
    timer.join()
