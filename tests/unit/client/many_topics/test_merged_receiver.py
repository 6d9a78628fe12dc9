"""Receiving from many: turns, waiting, batches, nothing lost by cancelling; in virtual time."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

import pytest

from pulsar_py.client.many_topics.merged_receiver import TURN_MESSAGES, MergedReceiver
from pulsar_py.client.messages.message import Message
from pulsar_py.client.receiving.batch_receive import BatchCollector, ConsumerBatchReceivePolicy
from pulsar_py.common.errors import AlreadyClosedError, PulsarError, TopicTerminatedError
from pulsar_py.testing.clock import run_virtual
from tests.unit.client.consumer_parts import spawn


class Source:
    """A consumer with a queue."""

    def __init__(self, receiver: Receiver, name: str = "") -> None:
        self.name = name
        self.queue: deque[Message] = deque()
        self.delivered: list[bytes] = []
        self.error: PulsarError | None = None
        self.on_ready: Callable[[], None] | None = None
        self.on_recall: Callable[[], None] | None = None
        receiver.add(self)

    def put(self, count: int, first: int = 0) -> None:
        data = [f"{self.name}{number}".encode() for number in range(first, first + count)]
        self.queue.extend(Message.of(each) for each in data)
        assert self.on_ready is not None
        self.on_ready()

    def clear(self) -> None:
        assert self.on_recall is not None
        self.on_recall()
        self.queue.clear()

    def end(self, error: PulsarError) -> None:
        self.error = error
        assert self.on_ready is not None
        self.on_ready()

    def _is_empty(self) -> bool:
        if not self.queue and self.error is not None:
            raise self.error
        return not self.queue

    def take(self) -> Message | None:
        return None if self._is_empty() else self.queue.popleft()

    def collect(self, collector: BatchCollector, messages_limit: int) -> bool:
        for _ in range(messages_limit):
            if collector.is_full or self._is_empty():
                break
            if not collector.has_room_for(self.queue[0]):
                return True
            collector.add(self.queue.popleft())
        return collector.is_full

    def put_back(self, messages: list[Message]) -> None:
        self.queue.extendleft(reversed(messages))

    def deliver(self, messages: list[Message]) -> list[Message]:
        self.delivered += data(messages)
        return messages


Receiver = MergedReceiver[Source]


def _raise(source: Source, error: PulsarError) -> None:
    raise error


def a_receiver() -> Receiver:
    return MergedReceiver(lambda: None, _raise)


def data(messages: list[Message]) -> list[bytes]:
    return [each.data() for each in messages]


def received(receiver: Receiver) -> bytes | None:
    """The next message's data, None if there is none here."""
    message = receiver.receive_nowait()
    return None if message is None else message.data()


def test_a_full_source_does_not_keep_others_out() -> None:
    async def work() -> None:
        receiver = a_receiver()
        full, small = Source(receiver, "f"), Source(receiver, "s")
        full.put(100)
        small.put(2)
        taken = data([await receiver.receive(None) for _ in range(TURN_MESSAGES + 4)])
        assert taken[TURN_MESSAGES:] == [b"s0", b"s1", b"f16", b"f17"]
        assert taken[:TURN_MESSAGES] == [b"f%d" % n for n in range(TURN_MESSAGES)]

    run_virtual(work())


def test_a_closed_source_is_passed_over() -> None:
    receiver = a_receiver()
    closed, other = Source(receiver, "c"), Source(receiver, "o")
    closed.end(AlreadyClosedError("closed"))
    other.put(1)
    assert received(receiver) == b"o0"
    assert received(receiver) is None


def test_a_source_that_failed_is_heard_of_once_and_others_go_on() -> None:
    receiver = a_receiver()
    failed, other = Source(receiver, "f"), Source(receiver, "o")
    failed.end(TopicTerminatedError("f ended"))
    other.put(1)
    with pytest.raises(TopicTerminatedError, match="f ended"):
        receiver.receive_nowait()
    assert received(receiver) == b"o0"


def test_a_source_that_leaves_in_its_turn_is_not_asked_again() -> None:
    receiver = a_receiver()
    leaving, other = Source(receiver, "l"), Source(receiver, "o")
    leaving.put(5)
    other.put(1)
    assert received(receiver) == b"l0"
    receiver.discard(leaving)
    assert received(receiver) == b"o0"
    assert received(receiver) is None


def test_all_who_wait_are_served_by_one_group() -> None:
    async def work() -> list[bytes]:
        receiver = a_receiver()
        source = Source(receiver)
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(receiver.receive(None)) for _ in range(3)]
            await asyncio.sleep(1)
            source.put(3)
        return data([task.result() for task in tasks])

    assert run_virtual(work()) == [b"0", b"1", b"2"]


def test_receiving_ends_in_time() -> None:
    async def work() -> None:
        with pytest.raises(TimeoutError):
            await a_receiver().receive(2.0)
        assert asyncio.get_running_loop().time() == pytest.approx(2.0, abs=0.01)

    run_virtual(work())


def test_a_cancelled_receive_loses_nothing() -> None:
    async def work() -> None:
        receiver = a_receiver()
        source = Source(receiver)
        async with asyncio.TaskGroup() as group:
            first = group.create_task(receiver.receive(None))
            second = group.create_task(receiver.receive(None))
            await asyncio.sleep(1)
            source.put(1)
            first.cancel()
        assert second.result().data() == b"0"

    run_virtual(work())


def test_a_batch_is_full_by_count_or_bytes_or_time() -> None:
    async def work() -> None:
        receiver = a_receiver()
        source = Source(receiver)
        source.put(5)
        by_count = ConsumerBatchReceivePolicy(2, -1, 1000)
        assert data(await receiver.batch_receive(by_count)) == [b"0", b"1"]
        by_bytes = ConsumerBatchReceivePolicy(-1, 2, 1000)
        assert data(await receiver.batch_receive(by_bytes)) == [b"2", b"3"]
        assert data(await receiver.batch_receive(by_count)) == [b"4"]
        assert await receiver.batch_receive(by_count) == []
        assert asyncio.get_running_loop().time() == pytest.approx(2.0, abs=0.01)

    run_virtual(work())


def test_what_does_not_fit_comes_next() -> None:
    async def work() -> None:
        receiver = a_receiver()
        source = Source(receiver, "long")
        source.put(2)
        policy = ConsumerBatchReceivePolicy(-1, 6, 1000)
        assert data(await receiver.batch_receive(policy)) == [b"long0"]
        assert (await receiver.receive(None)).data() == b"long1"

    run_virtual(work())


def test_a_cancelled_batch_gives_back_what_it_took_to_where_it_came_from() -> None:
    async def work() -> None:
        receiver = a_receiver()
        a, b = Source(receiver, "a"), Source(receiver, "b")
        collecting = spawn(receiver.batch_receive(ConsumerBatchReceivePolicy(10, -1, 1000)))
        await asyncio.sleep(0.1)
        for number in range(2):
            a.put(1, first=number)
            b.put(1, first=number)
            await asyncio.sleep(0.1)
        assert (len(a.queue), len(b.queue)) == (0, 0)
        waiting = spawn(receiver.receive(None))
        collecting.cancel()
        assert (await waiting).data() == b"a0"
        assert (data(list(a.queue)), data(list(b.queue))) == ([b"a1"], [b"b0", b"b1"])
        a.put(1, first=2)
        received = data([await receiver.receive(None) for _ in range(4)])
        assert received == [b"a1", b"a2", b"b0", b"b1"]
        assert a.delivered == b.delivered == []

    run_virtual(work())


def test_a_batch_counts_as_delivered_when_it_is_handed_out() -> None:
    async def work() -> None:
        receiver = a_receiver()
        a, b = Source(receiver, "a"), Source(receiver, "b")
        collecting = spawn(receiver.batch_receive(ConsumerBatchReceivePolicy(3, -1, 1000)))
        a.put(1)
        await asyncio.sleep(0.1)
        b.put(1)
        await asyncio.sleep(0.1)
        assert (a.delivered, b.delivered) == ([], [])
        a.put(1, first=1)
        assert data(await collecting) == [b"a0", b"b0", b"a1"]
        assert (a.delivered, b.delivered) == ([b"a0", b"a1"], [b"b0"])

    run_virtual(work())


def test_a_batch_takes_turns() -> None:
    async def work() -> None:
        receiver = a_receiver()
        full, small = Source(receiver, "f"), Source(receiver, "s")
        full.put(100)
        small.put(2)
        policy = ConsumerBatchReceivePolicy(TURN_MESSAGES + 4, -1, 1000)
        taken = data(await receiver.batch_receive(policy))
        assert taken[TURN_MESSAGES - 1 :] == [b"f15", b"s0", b"s1", b"f16", b"f17"]
        assert (await receiver.receive(None)).data() == b"f18"

    run_virtual(work())


def test_a_batch_in_the_making_forgets_what_its_source_cleared_and_has_room_again() -> None:
    async def work() -> None:
        receiver = a_receiver()
        a, b = Source(receiver, "a"), Source(receiver, "b")
        async with asyncio.TaskGroup() as group:
            batch = group.create_task(receiver.batch_receive(ConsumerBatchReceivePolicy(3, -1, 9)))
            await asyncio.sleep(0)
            a.put(1)
            b.put(1)
            await asyncio.sleep(0.001)
            a.clear()
            a.put(5)
        assert data(batch.result()) == [b"b0", b"a0", b"a1"]
        assert a.delivered == [b"a0", b"a1"]

    run_virtual(work())


def test_what_a_source_had_when_it_ended_is_received_before_the_end() -> None:
    async def work() -> None:
        receiver = a_receiver()
        failed, other = Source(receiver, "f"), Source(receiver, "o")
        policy = ConsumerBatchReceivePolicy(10, -1, 1000)
        failed.put(2)
        failed.end(TopicTerminatedError("f ended"))
        other.put(1)
        assert data(await receiver.batch_receive(policy)) == [b"f0", b"f1"]
        with pytest.raises(TopicTerminatedError, match="f ended"):
            await receiver.batch_receive(policy)
        assert data(await receiver.batch_receive(policy)) == [b"o0"]

    run_virtual(work())


def test_a_batch_keeps_nothing_of_a_source_that_leaves() -> None:
    async def work() -> None:
        receiver = a_receiver()
        leaving, other = Source(receiver, "l"), Source(receiver, "o")
        collecting = spawn(receiver.batch_receive(ConsumerBatchReceivePolicy(2, -1, 1000)))
        leaving.put(1)
        await asyncio.sleep(0.1)
        receiver.discard(leaving)
        assert leaving.on_ready is leaving.on_recall is None
        assert data(list(leaving.queue)) == [b"l0"]
        other.put(2)
        assert data(await collecting) == [b"o0", b"o1"]

    run_virtual(work())


class Owner:
    """Whom a receiver belongs to: open, or closed."""

    def __init__(self) -> None:
        self.receiver: Receiver = MergedReceiver(self._check_open, _raise)
        self._is_closed = False

    def _check_open(self) -> None:
        if self._is_closed:
            raise AlreadyClosedError("closed")

    def close(self) -> None:
        self._is_closed = True
        self.receiver.close()


def test_what_a_batch_has_is_not_to_be_had_after_the_end() -> None:
    async def work() -> None:
        owner = Owner()
        Source(owner.receiver).put(1)
        batch = spawn(owner.receiver.batch_receive(ConsumerBatchReceivePolicy(2, -1, 1000)))
        await asyncio.sleep(0.5)
        owner.close()
        with pytest.raises(AlreadyClosedError):
            await batch
        assert received(owner.receiver) is None

    run_virtual(work())


def test_closing_wakes_who_waits() -> None:
    async def work() -> None:
        owner = Owner()
        Source(owner.receiver).put(1)
        assert (await owner.receiver.receive(None)).data() == b"0"
        waiting = spawn(owner.receiver.receive(None))
        await asyncio.sleep(1)
        assert not waiting.done()
        owner.close()
        with pytest.raises(AlreadyClosedError):
            await waiting

    run_virtual(work())
