"""A thread that waits reads its message itself, and what it must not handle the loop does."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from pulsar_py import blocking
from pulsar_py.blocking.socket_wait import SocketSignal
from pulsar_py.client.brokers.client_cnx import ClientCnx
from pulsar_py.client.brokers.direct_socket import DirectSocket
from pulsar_py.client.brokers.lent_reading import LentReading
from pulsar_py.client.brokers.thread_reads import MessageReader, Read, ThreadReads
from pulsar_py.client.producing.pending_messages import PendingEntry, PendingMessages
from pulsar_py.client.producing.send_permits import SendPermits
from pulsar_py.testing import BrokerThread
from pulsar_py.wire.frame_receiver import FrameReceiver

LOOP = "pulsar_py blocking"
RECEIVER = "receiver_0"


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Counter[Read]:
    """How many reads of threads there were, by what came of them."""
    counts: Counter[Read] = Counter()
    read = ThreadReads.read

    def counted(self: ThreadReads, reader: MessageReader) -> Read:
        outcome = read(self, reader)
        counts[outcome] += 1
        return outcome

    monkeypatch.setattr(ThreadReads, "read", counted)
    return counts


class Receiving:
    """A consumer, a producer of the same connection, and one thread that receives."""

    def __init__(
        self, client: blocking.Client, topic: str, threads: ThreadPoolExecutor, **options: object
    ) -> None:
        self.client = client
        self.consumer = client.subscribe(topic, "s", **options)
        self.producer = client.create_producer(topic)
        self.threads = threads
        self.number = 0

    @property
    def cnx(self) -> ClientCnx:
        cnx = self.consumer._inner.receiver.cnx
        assert cnx is not None
        return cnx

    @property
    def lent(self) -> LentReading:
        reads = self.cnx.reads
        assert reads is not None
        return reads.lent

    def wait(self, timeout_millis: int | None = None) -> Future[blocking.Message]:
        """Have the thread wait for a message, at the socket if its reading is lent."""
        waiting = self.threads.submit(self.consumer.receive, timeout_millis)
        until(lambda: len(self.consumer._prefetch._requests) == 1 or waiting.done())
        reads = self.cnx.reads
        if reads is not None and reads.lent.is_lent:
            deadline = time.monotonic() + 0.05  # the loop may be at work: then it waits for it
            while reads.lent._reader is None and time.monotonic() < deadline:
                time.sleep(0.0005)
        return waiting

    def one(self, timeout_millis: int | None = None) -> None:
        """Send a message, and receive it."""
        waiting = self.wait(timeout_millis)
        self.number += 1
        self.producer.send(b"%d" % self.number)
        assert waiting.result(30).data() == b"%d" % self.number

    def lend(self) -> None:
        """Until the reading is lent, however little came of it before."""
        for _ in range(100):
            self.lent._needed_count = 8
            self.one()
            if self.lent.is_lent:
                return
        pytest.fail("the reading was not lent")


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.0005)


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1, "receiver") as threads:
        yield threads


@pytest.fixture
def receiving(
    client: blocking.Client, topic: str, threads: ThreadPoolExecutor
) -> Iterator[Receiving]:
    receiving = Receiving(client, topic, threads)
    yield receiving
    receiving.consumer.close()  # so that no thread waits


def test_messages_alone_are_read_by_the_thread_that_waits(
    receiving: Receiving, reads: Counter[Read]
) -> None:
    receiving.lend()
    for _ in range(50):
        receiving.one()
        receiving.consumer.acknowledge(receiving.consumer._inner.receiver.last)
    assert reads[Read.TAKEN] > 25  # the loop may be at work when one of them comes
    assert receiving.lent.is_lent


def test_a_small_queue_is_refilled_and_a_batch_comes_whole(
    client: blocking.Client, topic: str, threads: ThreadPoolExecutor, reads: Counter[Read]
) -> None:
    receiving = Receiving(client, topic, threads, receiver_queue_size=20)
    receiving.lend()
    for _ in range(30):
        receiving.one()
    batching = client.create_producer(
        topic, batching_enabled=True, batching_max_publish_delay_ms=60_000
    )
    for round_number in range(10):
        waiting = receiving.wait()
        for number in range(3):
            batching.send_nowait(b"%d %d" % (round_number, number))
        batching.flush()
        received = [waiting.result(30), *(receiving.consumer.receive(30_000) for _ in range(2))]
        assert [each.data() for each in received] == [
            b"%d %d" % (round_number, number) for number in range(3)
        ]
    assert reads[Read.TAKEN]


def test_callbacks_are_called_by_a_thread_that_waits_without_a_limit_alone(
    receiving: Receiving,
) -> None:
    receiving.lend()
    callers: dict[int | None, Counter[str]] = {None: Counter(), 30_000: Counter()}
    for limit, counts in callers.items():
        for _ in range(30):
            called = threading.Event()

            def call(
                _: blocking.SendResult, counts: Counter[str] = counts, called: object = called
            ) -> None:
                counts[threading.current_thread().name] += 1
                called.set()

            waiting = receiving.wait(limit)
            receiving.producer.send_nowait(b"x").add_done_callback(call)
            waiting.result(30)
            assert called.wait(30)
    assert callers[None][RECEIVER]
    assert callers[30_000] == {LOOP: 30}


def test_a_callback_may_send_but_not_wait(receiving: Receiving) -> None:
    receiving.lend()
    errors: list[str] = []
    results: list[blocking.SendResult] = []

    def call(_: blocking.SendResult) -> None:
        if threading.current_thread().name == RECEIVER and not results:
            results.append(receiving.producer.send_nowait(b"from the callback"))
            for wait in (lambda: receiving.producer.send(b"x"), receiving.consumer.receive):
                try:
                    wait()
                except blocking.ClientError as error:
                    errors.append(str(error))

    while not results:
        waiting = receiving.wait()
        receiving.producer.send_nowait(b"x").add_done_callback(call)
        waiting.result(30)
        time.sleep(0.001)
    assert results[0].result(30) is not None
    assert ["callback of a send" in each for each in errors] == [True, True]
    assert receiving.consumer.receive(30_000).data() == b"from the callback"


@pytest.mark.parametrize("handled", [True, False])
def test_a_read_that_ctrl_c_interrupts_loses_no_message(
    receiving: Receiving, monkeypatch: pytest.MonkeyPatch, *, handled: bool
) -> None:
    receiving.lend()
    interrupts = [KeyboardInterrupt()]
    piece, read = FrameReceiver.piece, ThreadReads._handle

    def interrupted_before(self: FrameReceiver, size: int) -> bytes | None:
        if interrupts and threading.current_thread().name == RECEIVER:
            raise interrupts.pop()
        return piece(self, size)

    def interrupted_after(self: ThreadReads, *arguments: object) -> Read | None:
        outcome = read(self, *arguments)
        if interrupts and outcome is Read.TAKEN:
            raise interrupts.pop()
        return outcome

    if handled:
        monkeypatch.setattr(ThreadReads, "_handle", interrupted_after)
    else:
        monkeypatch.setattr(FrameReceiver, "piece", interrupted_before)
    before = receiving.cnx
    sent: list[bytes] = []
    received: list[bytes] = []
    while interrupts:
        waiting = receiving.wait()
        sent.append(b"before %d" % len(sent))
        receiving.producer.send_nowait(sent[-1])
        try:
            received.append(waiting.result(30).data())
        except KeyboardInterrupt:
            break
    until(lambda: before.closed_reason is not None)
    assert "interrupted" in str(before.closed_reason)
    for number in range(5):
        sent.append(b"after %d" % number)
        receiving.producer.send(sent[-1])
    while received[-1:] != sent[-1:]:
        received.append(receiving.consumer.receive(30_000).data())
    in_order = list(dict.fromkeys(received))  # some come again: they were not acknowledged
    assert [each for each in in_order if each in sent] == sent


def test_ctrl_c_while_it_waits_gives_the_reading_back(
    receiving: Receiving, monkeypatch: pytest.MonkeyPatch
) -> None:
    receiving.lend()
    wait = SocketSignal.wait_beside
    interrupts = [KeyboardInterrupt()]

    def interrupted(self: SocketSignal, *arguments: object) -> bool:
        if interrupts:
            raise interrupts.pop()
        return wait(self, *arguments)

    monkeypatch.setattr(SocketSignal, "wait_beside", interrupted)
    while True:
        waiting = receiving.wait()
        time.sleep(0.01)
        if not interrupts:
            break
        receiving.producer.send(b"x")  # the loop was at work when the thread asked it
        waiting.result(30)
    with pytest.raises(KeyboardInterrupt):
        waiting.result(30)
    receiving.one()


def test_ctrl_c_may_come_before_it_is_given_back(
    receiving: Receiving, monkeypatch: pytest.MonkeyPatch
) -> None:
    receiving.lend()
    give_back = LentReading.give_back
    interrupts = [KeyboardInterrupt()]

    def interrupted(self: LentReading, reader: object) -> None:
        if interrupts and threading.current_thread().name == RECEIVER:
            raise interrupts.pop()
        give_back(self, reader)

    monkeypatch.setattr(LentReading, "give_back", interrupted)
    seen: list[bytes] = []
    sent_count = 0
    while interrupts:
        waiting = receiving.wait()
        sent_count += 1
        receiving.producer.send(b"n%d" % sent_count)
        try:
            seen.append(waiting.result(30).data())
        except KeyboardInterrupt:
            break
    while len(seen) < sent_count:
        seen.append(receiving.consumer.receive(30_000).data())
    assert seen == [b"n%d" % number for number in range(1, sent_count + 1)]
    receiving.one()


def test_a_time_limit_ends_the_wait_and_the_loop_reads_on(receiving: Receiving) -> None:
    receiving.lend()
    with pytest.raises(blocking.ClientTimeoutError, match=r"no message within 0\.02 s"):
        receiving.wait(20).result(30)
    with pytest.raises(TimeoutError), blocking.timeout(0.02):
        receiving.consumer.receive()
    receiving.producer.send(b"later")
    assert receiving.consumer.receive(30_000).data() == b"later"
    for _ in range(3):
        receiving.one(30_000)


def test_a_thread_that_waits_at_the_socket_hears_of_the_end(receiving: Receiving) -> None:
    receiving.lend()
    waiting = receiving.wait()
    receiving.consumer.close()
    with pytest.raises(blocking.AlreadyClosedError):
        waiting.result(30)


@pytest.mark.parametrize("by", ["us", "the network"])
def test_a_connection_that_is_lost_meanwhile_is_replaced(receiving: Receiving, by: str) -> None:
    receiving.lend()
    waiting = receiving.wait()
    before = receiving.cnx
    if by == "us":
        before.give_up("for the test")
    else:
        with socket.socket(fileno=receiving.lent._direct._socket.dup().detach()) as ours:
            ours.shutdown(socket.SHUT_RDWR)
    until(lambda: before.closed_reason is not None)
    # What was not acknowledged comes again, on the new connection.
    assert waiting.result(30).data() == b"1"
    receiving.producer.send(b"after")
    while receiving.consumer.receive(30_000).data() != b"after":
        pass


def test_what_is_for_another_consumer_gets_to_it(
    receiving: Receiving, topic: str, reads: Counter[Read]
) -> None:
    other = receiving.client.subscribe(f"{topic}-2", "s")
    producer = receiving.client.create_producer(f"{topic}-2")
    receiving.lend()
    waiting = receiving.wait()
    for number in range(20):
        producer.send(b"%d" % number)
        assert other.receive(30_000).data() == b"%d" % number
    assert not waiting.done()
    receiving.producer.send(b"last")
    assert waiting.result(30).data() == b"last"


def test_what_comes_while_no_thread_waits_is_not_missed(receiving: Receiving) -> None:
    receiving.lend()
    for number in range(200):
        receiving.producer.send_nowait(b"%d" % number)
        if number % 7 == 0:
            time.sleep(0.002)
    receiving.producer.flush()
    received = [receiving.consumer.receive(30_000).data() for _ in range(200)]
    assert received == [b"%d" % number for number in range(200)]
    receiving.lend()


def test_a_seek_is_heard_at_the_socket(receiving: Receiving) -> None:
    receiving.lend()
    waiting = receiving.wait()
    receiving.consumer.seek(blocking.MessageId.earliest)
    assert waiting.result(30).data() == b"1"
    assert receiving.consumer.receive(30_000).data() == b"2"


def test_several_threads_share_a_consumer_and_lose_nothing(receiving: Receiving) -> None:
    receiving.lend()
    seen: Counter[bytes] = Counter()
    lock = threading.Lock()

    def receive() -> None:
        while (message := receiving.consumer.receive()).data() != b"end":
            with lock:
                seen[message.data()] += 1
            receiving.consumer.acknowledge(message)

    with ThreadPoolExecutor(4) as many:
        ends = [many.submit(receive) for _ in range(4)]
        for number in range(500):
            receiving.producer.send_nowait(b"n%d" % number)
            if number % 3 == 0:
                time.sleep(0.0005)
        receiving.producer.flush()
        until(lambda: len(seen) == 500)
        for _ in ends:
            receiving.producer.send(b"end")
        for end in ends:
            end.result(30)
    assert set(seen.values()) == {1}


def test_a_flush_of_another_thread_is_told_by_the_thread_that_reads(
    receiving: Receiving, reads: Counter[Read]
) -> None:
    receiving.lend()
    for _ in range(30):
        waiting = receiving.wait()
        receiving.producer.send_nowait(b"x")
        receiving.producer.flush()  # a future of the loop waits for the receipt
        waiting.result(30)
    assert reads[Read.TAKEN]


def test_a_connection_that_we_close_is_closed_though_a_thread_waits_at_it(
    receiving: Receiving, caplog: pytest.LogCaptureFixture
) -> None:
    receiving.lend()
    waiting = receiving.wait()
    before = receiving.cnx
    before.give_up("for the test")
    # The subscription is exclusive: the broker refuses the next consumer while this one is there.
    assert waiting.result(30).data() == b"1"
    assert before.closed_reason is not None
    assert "does not answer" not in caplog.text


def test_a_batch_is_for_all_threads_that_wait(
    client: blocking.Client, session_pulsar_broker: BrokerThread, topic: str, reads: Counter[Read]
) -> None:
    with (
        ThreadPoolExecutor(1, "receiver") as threads,
        blocking.Client(session_pulsar_broker.service_url) as other_client,
        ThreadPoolExecutor(1) as second,
    ):
        receiving = Receiving(client, topic, threads)
        batching = other_client.create_producer(
            topic, batching_enabled=True, batching_max_publish_delay_ms=60_000
        )
        receiving.lend()
        while not reads[Read.TAKEN]:
            first = receiving.wait()
            also = second.submit(receiving.consumer.receive)
            until(lambda: len(receiving.consumer._prefetch._requests) == 2)
            reads.clear()
            for data in (b"1", b"2"):
                batching.send_nowait(data)
            batching.flush()
            assert {first.result(30).data(), also.result(30).data()} == {b"1", b"2"}
        receiving.consumer.close()


def test_ctrl_c_while_a_read_is_left_to_the_loop_ends_the_connection(
    receiving: Receiving, monkeypatch: pytest.MonkeyPatch
) -> None:
    receiving.lend()
    interrupts = [KeyboardInterrupt()]
    loop = receiving.consumer._thread.loop
    call_soon_threadsafe = loop.call_soon_threadsafe

    def interrupted(callback: Callable[..., object], *arguments: object) -> object:
        if interrupts and getattr(callback, "__func__", None) is ThreadReads._handle_left:
            raise interrupts.pop()
        return call_soon_threadsafe(callback, *arguments)

    monkeypatch.setattr(loop, "call_soon_threadsafe", interrupted)
    monkeypatch.setattr(ThreadReads, "_handle", lambda *_: None)
    before = receiving.cnx
    while True:
        waiting = receiving.wait()
        receiving.producer.send_nowait(b"x")
        if waiting.exception(30) is not None:
            break
    with pytest.raises(KeyboardInterrupt):
        waiting.result()
    until(lambda: before.closed_reason is not None)
    receiving.producer.flush()


@pytest.mark.parametrize(
    ("where", "name"),
    [
        (PendingMessages, "take_confirmed"),
        (SendPermits, "give_back"),
        (PendingEntry, "_tell"),
    ],
)
def test_ctrl_c_while_a_receipt_is_handled_lets_no_sender_wait(
    receiving: Receiving, monkeypatch: pytest.MonkeyPatch, where: type, name: str
) -> None:
    interrupts: list[KeyboardInterrupt] = []
    called = getattr(where, name)

    def interrupted(self: object, *arguments: object) -> object:
        is_told = name == "_tell"
        result = None if is_told else called(self, *arguments)
        if interrupts and threading.current_thread().name == RECEIVER:
            raise interrupts.pop()
        return called(self, *arguments) if is_told else result

    monkeypatch.setattr(where, name, interrupted)
    with ThreadPoolExecutor(1) as senders:
        while True:
            interrupts.clear()
            receiving.lend()
            waiting = receiving.wait()
            interrupts.append(KeyboardInterrupt())
            sending = senders.submit(receiving.producer.send, b"x")
            if waiting.exception(30) is not None:
                break
            sending.result(30)
        assert sending.result(10) is not None
        receiving.producer.send(b"after")
    assert receiving.producer._inner._permits.used == 0
    while receiving.consumer.receive(30_000).data() != b"after":
        pass


def test_a_signal_that_came_too_late_wakes_nobody_else(
    receiving: Receiving, monkeypatch: pytest.MonkeyPatch
) -> None:
    receiving.lend()
    prefetch = receiving.consumer._prefetch
    wait = SocketSignal.wait_beside
    late: list[bool] = []

    def waits_too_long(self: SocketSignal, *arguments: object) -> bool:
        if late:
            late.pop()
            receiving.lent.give_back(prefetch._at_socket)
            receiving.producer.send_nowait(b"late")
            until(lambda: bool(prefetch.messages))
            raise TimeoutError
        return wait(self, *arguments)

    monkeypatch.setattr(SocketSignal, "wait_beside", waits_too_long)
    while True:
        receiving.lend()
        late.append(True)
        waiting = receiving.threads.submit(receiving.consumer.receive)
        time.sleep(0.02)
        if not late:
            break
        late.clear()
        receiving.producer.send(b"x")  # the loop was at work when the thread asked it
        waiting.result(30)
    with pytest.raises(TimeoutError):
        waiting.result(30)
    assert receiving.consumer.receive(30_000).data() == b"late"
    for _ in range(3):  # the first one asks the loop
        waiting = receiving.wait()
        time.sleep(0.01)
        assert len(prefetch._requests) == 1
        receiving.producer.send(b"next")
        assert waiting.result(30).data() == b"next"
        assert not prefetch._requests


@pytest.mark.parametrize("by", ["thread", "loop"])
@pytest.mark.parametrize("error", [ValueError, GeneratorExit])
def test_a_callback_that_raises_ends_the_connection_and_loses_no_message(
    receiving: Receiving, by: str, error: type[BaseException]
) -> None:
    receiving.lend()
    before = receiving.cnx

    def call(_: blocking.SendResult) -> None:
        raise error("of a callback")

    waiting = receiving.wait(30_000)  # with a limit: the loop calls
    if by == "loop":
        receiving.lent.give_back(receiving.consumer._prefetch._at_socket)
    receiving.producer.send_nowait(b"x").add_done_callback(call)
    until(lambda: before.closed_reason is not None)
    received = [waiting.result(30).data()]
    receiving.producer.send(b"after")
    while received[-1] != b"after":
        received.append(receiving.consumer.receive(30_000).data())
    assert b"x" in received


def test_the_loop_reads_nothing_over_what_a_thread_has_read(
    receiving: Receiving, monkeypatch: pytest.MonkeyPatch
) -> None:
    receiving.lend()
    reads = receiving.cnx.reads

    def read_in_loop() -> None:
        reads.lent.is_reading = True  # by a thread, since the loop woke up
        with monkeypatch.context() as patched:
            patched.delattr(DirectSocket, "receive_into")
            reads._read_in_loop()
        reads.lent.is_reading = False

    receiving.consumer._thread.call(read_in_loop)


def test_a_reader_acknowledges_what_threads_have_read(
    client: blocking.Client,
    topic: str,
    threads: ThreadPoolExecutor,
    reads: Counter[Read],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reader = client.create_reader(topic, blocking.MessageId.latest)
    producer = client.create_producer(topic)
    consumer = reader._inner.consumer
    acknowledged: list[bytes] = []
    acknowledge = consumer.acknowledge_cumulative

    def noted(message: blocking.Message) -> Awaitable[None]:
        acknowledged.append(message.data())
        return acknowledge(message)

    monkeypatch.setattr(consumer, "acknowledge_cumulative", noted)
    number = 0
    while not reads[Read.TAKEN]:
        number += 1
        waiting = threads.submit(reader.read_next)
        time.sleep(0.002)
        producer.send(b"%d" % number)
        assert waiting.result(30).data() == b"%d" % number
    until(lambda: acknowledged[-1:] == [b"%d" % number])


def test_the_main_thread_does_not_read_where_a_signal_has_a_new_handler(
    receiving: Receiving,
) -> None:
    sent: list[object] = []
    receiving.lend()
    before = signal.getsignal(signal.SIGALRM)
    receiving.producer.send(b"before")
    receiving.consumer.receive(30_000)  # looks at the handlers
    signal.signal(
        signal.SIGALRM, lambda *_: sent.append(blocking_send(receiving.producer, b"from it"))
    )
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        assert receiving.consumer.receive(30_000).data() == b"from it"
    finally:
        signal.signal(signal.SIGALRM, before)
    assert len(sent) == 1


def blocking_send(producer: blocking.Producer, data: bytes) -> blocking.MessageId:
    with blocking.timeout(10):
        return producer.send(data)


def test_a_limit_of_a_month_is_none(receiving: Receiving) -> None:
    receiving.lend()
    for _ in range(3):
        receiving.one(30 * 24 * 3600 * 1000)


def test_without_a_descriptor_there_is_no_signal(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise OSError(24, "too many open files")

    monkeypatch.setattr(os, "eventfd", refuse)
    unraisable: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", unraisable.append)
    with pytest.raises(OSError, match="too many"):
        SocketSignal()
    assert not unraisable


def test_a_signal_may_be_set_before_it_is_waited_for() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        signal = SocketSignal()
        signal.set()
        signal.set()
        assert signal.wait_beside(ours.fileno(), None) is False
        with pytest.raises(TimeoutError):
            signal.wait_beside(ours.fileno(), 0.01)
        theirs.send(b"x")
        assert signal.wait_beside(ours.fileno(), None) is True
        with pytest.raises(TimeoutError):
            signal.wait(0.01)  # it does not look at the socket
        signal.set()
        signal.wait(30)


async def test_a_connection_of_another_loop_lends_nothing(session_pulsar_broker: object) -> None:
    from pulsar_py import Client  # noqa: PLC0415 - for this test alone

    async with Client(session_pulsar_broker.service_url) as client:
        consumer = await client.subscribe("test-socket-wait-asyncio", "s")
        assert consumer.receiver.cnx.reads is None
        assert asyncio.get_running_loop() is consumer.receiver.cnx._loop
