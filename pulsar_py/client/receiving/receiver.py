"""Receives messages for one consumer and hands them to the application (edge).

    on_message --> IncomingQueue --take--> application
                        |
                        +--> permits given back, problems reported, chunks expired, keys learned

A message in the queue is taken without suspending, without a task or future. A `receive` that finds
none waits in `Waiters` and looks again when entries came, so that cancelling it loses nothing; the
messages of a cancelled `batch_receive` go back to the front of the queue.

A batch takes its messages in two steps: they are collected as they come, and count as delivered
when the whole batch is. Until then they can be recalled to the queue, as they are before it is
cleared; `MergedReceiver` collects from several consumers in the same way.

Source: ConsumerBase and ConsumerImpl in Pulsar's Java client.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Awaitable, Callable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final

from pulsar_py.client.acknowledging import ack_commands
from pulsar_py.client.acknowledging.ack_grouping import AcknowledgmentsTracker
from pulsar_py.client.acknowledging.acknowledger import Acknowledger
from pulsar_py.client.acknowledging.redeliveries import Redeliveries
from pulsar_py.client.messages.message import EntryKey, Message, payload_bytes
from pulsar_py.client.receiving.batch_receive import BatchCollector, ConsumerBatchReceivePolicy
from pulsar_py.client.receiving.flow_permits import FlowPermits
from pulsar_py.client.receiving.incoming_queue import (
    Effects,
    IncomingQueue,
    Needs,
    entry_messages_count,
)
from pulsar_py.client.receiving.waiters import Waiters
from pulsar_py.client.shared.statistics import ConsumerCounters
from pulsar_py.common.buffer import EntryBytes
from pulsar_py.common.errors import ClientTimeoutError
from pulsar_py.common.failures import OnFailure
from pulsar_py.common.loops.clock import Clock
from pulsar_py.common.loops.tasks import TaskOwner
from pulsar_py.proto.PulsarApi_pb2 import CommandMessage
from pulsar_py.wire.client_commands import flow

if TYPE_CHECKING:
    from pulsar_py.client.brokers.client_cnx import ClientCnx

__all__ = ["Receiver"]

logger = logging.getLogger(__name__)

_TOGETHER_COUNT: Final = 8
"""So many messages that are decoded go into a run together; fewer cost less one by one."""


class Receiver:
    """Queue, permits and waiting receivers of one consumer; owned by it."""

    def __init__(
        self,
        queue: IncomingQueue,
        permits: FlowPermits,
        *,
        consumer_id: int,
        subject: str,
        clock: Clock,
        tasks: TaskOwner,
        tracker: AcknowledgmentsTracker,
        acknowledger: Acknowledger,
        redeliveries: Redeliveries,
        counters: ConsumerCounters,
        prepare: Callable[[Needs], Awaitable[None]],
        load_schema: Callable[[bytes], Awaitable[None]],
        is_refused_later: bool,
    ) -> None:
        """Nothing is received before `connected`.

        Args:
            queue: Holds and decodes entries.
            permits: Counts how many more messages the broker may send.
            consumer_id: The consumer's id on its connections.
            subject: The consumer's name in errors.
            clock: For time limits.
            tasks: `prepare` runs there.
            tracker: Collects acknowledgements.
            acknowledger: Sends them.
            redeliveries: Asks for entries again.
            counters: Statistics.
            prepare: Learns a key or fetches a schema; raises nothing.
            load_schema: Fetches a schema version before its first message is asked for; raises
                nothing.
            is_refused_later: Whether entries that could not be used are negatively acknowledged,
                so that they come again.
        """
        self.queue = queue
        self.permits = permits
        self.consumer_id: Final = consumer_id
        self._subject = subject
        self._clock = clock
        self._tasks = tasks
        self._tracker = tracker
        self._acknowledger = acknowledger
        self._redeliveries = redeliveries
        self._counters = counters
        self._prepare = prepare
        self._load_schema = load_schema
        # Schema versions that are being fetched for entries behind the first one.
        self._loading: set[bytes] = set()
        self._is_refused_later = is_refused_later
        # The queue's own deque, which stays the same object: hot paths save a look-up.
        self._ready = queue.ready
        self._cnx: ClientCnx | None = None  # None while there is no connection
        self._waiters = Waiters()
        # Batches that are being collected.
        self._collectors: list[BatchCollector] = []
        # The last message that the application got; None before, and after a seek.
        self.last: Message | None = None
        # The error that `take` raises once no more messages can come; None before.
        self.closed_error: Exception | None = None
        # Called with each message before it is handed out (interceptors, dead letters); returns
        # the message to hand out, None if it was taken over. None: there is nothing to call.
        self.before_delivery: Callable[[Message], Message | None] | None = None
        # Called when entries came, before a task is woken for them; returns whether it took them
        # all. The blocking client's `Prefetch` sets it.
        self.take_over: Callable[[], bool] | None = None
        # Whether it would wake a thread with them; set by `Prefetch`, too.
        self.is_awaited: Callable[[], bool] | None = None
        # Called when entries came, besides waking tasks; `MergedReceiver` sets it.
        self.on_ready: Callable[[], None] | None = None
        # Makes a `MergedReceiver` return the messages that it has collected.
        self.on_recall: Callable[[], None] | None = None

    @property
    def topic(self) -> str:
        """The full name of the topic or partition."""
        return self.queue.topic

    @property
    def cnx(self) -> ClientCnx | None:
        """The connection on which it is registered; None without."""
        return self._cnx

    # --- called by the connection --------------------------------------------------------------

    def connected(self, cnx: ClientCnx) -> None:
        """The consumer is registered on `cnx`: send its first permits."""
        self._cnx = cnx
        self._send_flow(self.permits.opened(len(self._waiters)))

    def disconnected(self) -> None:
        """The registration is lost: permits can't be sent."""
        self._cnx = None

    def on_message(
        self,
        message: CommandMessage,
        headers_and_payload: EntryBytes,
        key: EntryKey | None = None,
    ) -> None:
        """An entry came; see `ConsumerHandler`."""
        # Hot path: consume in `make bench-client`; once an entry.
        version = self.queue.push(message, headers_and_payload, key)
        if version is not None and version not in self._loading:
            self._loading.add(version)
            self._tasks.spawn(self._load_ahead(version), "schema")

    @property
    def takes_in_turn(self) -> bool:
        """Whether a thread that has the loop's turn may `take_in_turn`."""
        # Hot path: latency in `make bench-client`, blocking.
        return (
            self.queue.is_empty
            and self.queue.effects is None
            and self.queue.keeps_entries_only
            and self.before_delivery is None
            and self.on_ready is None
            and self.closed_error is None
            and not self.permits.is_on_demand
            and not self._collectors
        )

    def take_in_turn(
        self, message: CommandMessage, headers_and_payload: EntryBytes, key: EntryKey | None
    ) -> list[Message]:
        """Push an entry, and take its messages; it asks nothing of the loop.

        Only while `takes_in_turn`. The loop has to `go_on` if `has_to_go_on` then.
        """
        # Hot path: latency in `make bench-client`, blocking.
        queue, ready = self.queue, self._ready
        queue.push(message, headers_and_payload, key)
        queue.fill(self._clock.monotonic_seconds())
        run = list(ready)
        if run:
            ready.clear()
            self.permits.to_give += len(run)
            self.last = run[-1]
        return run

    @property
    def has_to_go_on(self) -> bool:
        """Whether a `take_in_turn` has left something to the loop."""
        queue, permits = self.queue, self.permits
        return (
            queue.effects is not None
            or queue.needs is not None
            or permits.to_give >= permits.refill_at
        )

    def go_on(self) -> None:
        """Do what a `take_in_turn` has left to the loop."""
        if self.closed_error is None:
            self._fill()
            self._send_flow(self.permits.taken(0))

    async def _load_ahead(self, version: bytes) -> None:
        """Fetch a version now: who asks for its message without waiting gets it then.

        Where that fails it is tried again when the message is the next one.
        """
        try:
            await self._load_schema(version)
        finally:
            self._loading.discard(version)
        self.wake()

    def drop_entry(self, message: CommandMessage, headers_and_payload: EntryBytes) -> None:
        """Drop an entry that was sent before the queue was cleared; its permits are given back."""
        self.drop(entry_messages_count(message, headers_and_payload))

    def wake(self) -> None:
        """Wake waiting tasks: entries came, or may be decoded now."""
        if self.take_over is not None and self.take_over():
            return
        self._waiters.wake_one()
        if self.on_ready is not None:
            self.on_ready()

    def give_up(self, takes_over: Callable[[Message], bool]) -> None:
        """Pass messages at the head of the queue to `takes_over`, while it takes them.

        So dead letters are moved when they arrive, as in Pulsar's own clients, and not only when
        the application receives.
        """
        if self.closed_error is not None or self.permits.is_on_demand:
            return
        ready = self._ready
        while (ready or self._fill()) and takes_over(ready[0]):
            ready.popleft()
            self.drop(1)

    def drop(self, messages_count: int) -> None:
        """Give back the permits of messages that were dropped."""
        self._send_flow(self.permits.taken(messages_count))

    def clear(self) -> None:
        """Empty the queue, and give back its permits: the messages will be delivered again."""
        self.recall()
        self.drop(self.queue.clear())

    def recall(self) -> None:
        """Return messages to the queue that were collected for unfinished batches."""
        for each in reversed(self._collectors):
            messages = each.messages
            each.clear()
            self.put_back(messages)
        if self.on_recall is not None:
            self.on_recall()

    def pause(self) -> None:
        """Send no more permits; queued messages can be taken."""
        self.permits.pause()

    def resume(self) -> None:
        """Send permits again."""
        self._send_flow(self.permits.resume(len(self._waiters)))

    def _send_flow(self, permits_count: int) -> None:
        if permits_count > 0 and self._cnx is not None:
            self._cnx.send(flow(self.consumer_id, permits_count))
            # Now, not at the end of this step of the loop: a task that takes messages does not
            # suspend before the queue is empty, and the broker should refill it meanwhile
            # (consuming unbatched: at least a third more messages a second).
            self._cnx.flush()

    # --- called for the application ------------------------------------------------------------

    def take(self) -> Message | None:
        """The next queued message, None if there is none.

        Raises:
            AlreadyClosedError: The consumer is closed.
            ServiceError, ClientError: The consumer ended for good; the error that ended it.
        """
        # Hot path: consume in `make bench-client`.
        ready, permits = self._ready, self.permits
        while ready or self._fill():
            message = ready.popleft()
            permits.to_give = to_give = permits.to_give + 1
            if to_give >= permits.refill_at:
                self._send_flow(permits.taken(0))
            if self.before_delivery is not None:
                replaced = self.before_delivery(message)
                if replaced is None:
                    continue
                message = replaced
            self.last = message
            return message
        return None

    @property
    def waiters_count(self) -> int:
        """The number of tasks that wait for a message."""
        return len(self._waiters)

    @property
    def is_ready(self) -> bool:
        """Whether `take` has a message."""
        return bool(self._ready) or self._fill()

    def _fill(self) -> bool:
        """Decode entries until a message is ready."""
        if self.closed_error is not None:
            raise self.closed_error
        queue, clock = self.queue, self._clock
        is_filled = queue.fill(clock.monotonic_seconds())
        if queue.effects is not None:
            self._apply_effects()
        if self.permits.is_on_demand:
            self.permits.arrived(queue.permits_used)
            queue.permits_used = 0
        if queue.needs is not None and not queue.is_preparing:
            queue.is_preparing = True
            self._tasks.spawn(self._prepare_head(queue.needs), "prepare")
        return is_filled

    async def _prepare_head(self, needs: Needs) -> None:
        await self._prepare(needs)
        if self.queue.needs is needs:
            clock = self._clock
            self.queue.prepared(clock.monotonic_seconds())
            self._apply_effects()
            self.wake()

    def _apply_effects(self) -> None:
        """Carry out the queue's effects: acknowledge, report, ask for again, give permits back."""
        effects = self.queue.take_effects()
        if effects is None:
            return
        for key, problem in effects.problems:
            self._counters.receive_failures += 1
            logger.error(
                "%s: entry %d:%d not usable: %s",
                self._subject,
                *key,
                problem.text,
                extra={"subject": self._subject, "problem": problem.text},
            )
            if self._cnx is not None:
                self._cnx.send(
                    ack_commands.validation_ack(self.consumer_id, key, problem.validation_error)
                )
        if effects.to_acknowledge:
            self._tracker.acknowledge_entries(effects.to_acknowledge)
            # At once: sent later, after a seek back, it would acknowledge entries that the seek
            # wants delivered again.
            self._acknowledger.flush()
        self._hold(effects)
        if effects.has_chunks:
            self._redeliveries.chunks_wait(self.queue.next_chunk_expiry())
        if effects.dropped_count:
            self.drop(effects.dropped_count)

    def _hold(self, effects: Effects) -> None:
        """Have entries that can't be used now delivered again: by time-out, or as negative acks.

        On an Exclusive or Failover subscription a negative acknowledgement brings all later
        messages again, too. So there it is sent only for chunks that are worth it, and not for
        `held` entries, which would most likely be as unusable again.
        """
        reasons = [(key, True) for key in effects.to_redeliver]
        reasons += [(key, self._is_refused_later) for key in effects.held]
        for key, is_refused in reasons:
            self._counters.receive_failures += 1
            if self._redeliveries.unacked is not None:
                self._redeliveries.handed_out(key, 0)
            elif is_refused:
                self._redeliveries.refuse(key, 0)
            logger.warning(
                "%s: entry %d:%d can't be used yet, it is not delivered",
                self._subject,
                *key,
                extra={"subject": self._subject, "ledger_id": key[0], "entry_id": key[1]},
            )

    def expire_chunks(self, now: float, *, is_active: bool) -> float | None:
        """Give up incomplete messages that are too old; returns when to call this again.

        Time does not count while the broker can't send the rest: without a connection or permits,
        or while another Failover consumer is active.
        """
        can_come = (
            is_active
            and self._cnx is not None
            and self.permits.are_out(self.queue.messages_count())
        )
        expires_at = self.queue.expire_chunks(now, can_come=can_come)
        self._apply_effects()
        return expires_at

    def take_run(self, messages_limit: int, bytes_limit: int) -> Sequence[Message]:
        """Queued messages, up to about the limits; empty if the queue is.

        A batch that was kept whole comes alone, as a `ReceivedBatch`. Raises as `take`.
        """
        # Hot path: batch read in `make bench-spark`.
        assert self.before_delivery is None, "runs go past interceptors and dead letters"
        queue, ready, permits = self.queue, self._ready, self.permits
        batches = queue.batches
        run: list[Message] = []
        size_bytes = 0
        is_over = False  # whether the limit lies within the messages that are decoded
        while size_bytes < bytes_limit and len(run) < messages_limit:
            if not ready and ((run and queue.is_empty) or not self._fill()):
                break
            if batches:
                if run:
                    break
                batch = batches.popleft()
                self.last = batch.last
                self._send_flow(permits.taken(len(batch)))
                return batch
            count = min(len(ready), messages_limit - len(run))
            if count >= _TOGETHER_COUNT and not is_over:
                together = list(islice(ready, count))
                together_bytes = payload_bytes(together)
                is_over = size_bytes + together_bytes > bytes_limit
                if not is_over:
                    run += together
                    size_bytes += together_bytes
                    for _ in together:
                        ready.popleft()
                    self._send_flow(permits.taken(count))
                    continue
            message = ready.popleft()
            run.append(message)
            size_bytes += message.size()
            permits.to_give += 1
            if permits.to_give >= permits.refill_at:
                self._send_flow(permits.taken(0))
        if run:
            self.last = run[-1]
        return run

    async def receive_run(
        self,
        timeout_seconds: float,
        messages_limit: int,
        bytes_limit: int,
        until: EntryKey | None = None,
    ) -> Sequence[Message]:
        """As `take_run`, but waits until there is something.

        Empty if the time passed, or if the queue is empty and the entry `until` was passed.
        """
        try:
            async with asyncio.timeout(timeout_seconds) as limit:
                while not (run := self.take_run(messages_limit, bytes_limit)):
                    if until is not None and self.queue.passed_key >= until:
                        break
                    await self._wait()
                return run
        except TimeoutError:
            if not limit.expired():
                raise
            return ()

    async def receive(self, timeout_seconds: float | None) -> Message:
        """The next message; waits for one.

        Raises:
            ClientTimeoutError: None came in time.
            AlreadyClosedError, ServiceError, ClientError: As `take`.
        """
        if timeout_seconds is None:
            return await self._receive()
        try:
            async with asyncio.timeout(timeout_seconds) as limit:
                return await self._receive()
        except TimeoutError:
            if not limit.expired():
                raise
            raise ClientTimeoutError(
                f"{self._subject}: no message within {timeout_seconds:g} s"
            ) from None

    async def _receive(self) -> Message:
        while (message := self.take()) is None:
            await self._wait()
        if len(self._waiters) and not self.queue.is_empty:
            self._waiters.wake_one()
        return message

    async def _wait(self) -> None:
        self._send_flow(self.permits.wanted(len(self._waiters) + 1))
        await self._waiters.wait()

    async def batch_receive(self, policy: ConsumerBatchReceivePolicy) -> list[Message]:
        """Several messages; empty if the time passed without any.

        Raises as `take`.
        """
        collector = BatchCollector(policy)
        self._collectors.append(collector)
        try:
            with OnFailure(lambda: self.put_back(collector.messages)):
                await self._collect_in_time(collector, policy.timeout_seconds)
        finally:
            self._collectors.remove(collector)
        return self.deliver(collector.messages)

    async def _collect_in_time(
        self, collector: BatchCollector, timeout_seconds: float | None
    ) -> None:
        try:
            async with asyncio.timeout(timeout_seconds) as limit:
                while not self.collect(collector):
                    await self._wait()
        except TimeoutError:
            if not limit.expired():
                raise

    def collect(self, collector: BatchCollector, messages_limit: int = sys.maxsize) -> bool:
        """Take queued messages that fit; returns whether the next one does not fit.

        Raises as `take`. The caller has to give the messages to `deliver`, or to `put_back` when
        `on_recall` is called.
        """
        ready, permits = self._ready, self.permits
        while messages_limit > 0 and not collector.is_full and (ready or self._fill()):
            if not collector.has_room_for(ready[0]):
                return True
            collector.add(ready.popleft())
            messages_limit -= 1
            permits.to_give += 1
            if permits.to_give >= permits.refill_at:
                self._send_flow(permits.taken(0))
        return collector.is_full

    def put_back(self, messages: list[Message]) -> None:
        """Return messages that were collected and not delivered to the front of the queue."""
        self.queue.put_back(messages)
        self.permits.to_give -= len(messages)

    def deliver(self, messages: list[Message]) -> list[Message]:
        """Deliver the collected messages."""
        if self.before_delivery is not None:
            replaced = map(self.before_delivery, messages)
            messages = [each for each in replaced if each is not None]
        if messages:
            self.last = messages[-1]
        return messages

    def count(self) -> None:
        """Bring the counters up to date: decoded messages that are not queued were handed out."""
        queue = self.queue
        waiting_count = len(queue.ready) + sum(map(len, queue.batches))
        self._counters.messages_received = queue.decoded_count - waiting_count
        waiting_bytes = sum(each.size() for each in queue.ready)
        waiting_bytes += sum(each.size() for each in queue.batches)
        self._counters.bytes_received = max(queue.decoded_bytes - waiting_bytes, 0)

    def fail(self, error: Exception) -> None:
        """End: queued messages can still be received, then `error` is raised."""
        self.closed_error = error
        self._cnx = None
        self._waiters.wake_all()
        if self.on_ready is not None:
            self.on_ready()

    def close(self, error: Exception) -> None:
        """End: queued messages are dropped, and `take` raises `error` from now on."""
        self.recall()
        self.queue.clear()
        self.fail(error)
