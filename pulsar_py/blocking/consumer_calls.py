"""`ConsumerCalls`: the calls that blocking consumers of one and of several topics share (edge).

Receiving goes through a `Prefetch`, acknowledging without receipts through `Acknowledgements`;
everything else is a call of the asyncio consumer in the loop, before which acknowledgements that
wait are handed over.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from pulsar_py.blocking.acknowledgements import Acknowledgements
from pulsar_py.blocking.client_parts import ClientParts
from pulsar_py.blocking.listener_pool import ListenerPool, in_listener
from pulsar_py.blocking.prefetch import Prefetch
from pulsar_py.client.consuming import consumer
from pulsar_py.client.many_topics import multi_topics_consumer
from pulsar_py.client.messages.message import Message
from pulsar_py.client.receiving.batch_receive import ConsumerBatchReceivePolicy
from pulsar_py.client.shared.statistics import ConsumerStatistics
from pulsar_py.client.shared.type_variables import T_co
from pulsar_py.common.errors import AlreadyClosedError, OperationNotSupportedError
from pulsar_py.common.message_id import MessageId

__all__ = ["ConsumerCalls", "Handling"]

T = TypeVar("T")
C = TypeVar("C", bound=consumer.Consumer[Any] | multi_topics_consumer.MultiTopicsConsumer[Any])


@dataclass(frozen=True, slots=True)
class Handling:
    """How messages of a blocking consumer get to its threads, and back."""

    run_limit: int
    """The most messages that are brought to the threads at a time."""
    policy: ConsumerBatchReceivePolicy
    """That of `batch_receive`."""
    pool: ListenerPool | None
    """The threads of its listener; None without one."""


class ConsumerCalls(Generic[C, T_co]):
    """Receives messages for one subscription, in any thread. Made by `Client.subscribe`."""

    def __init__(self, shared: ClientParts, inner: C, handling: Handling) -> None:
        """Take over an open consumer; called in the loop."""
        self._shared = shared
        self._thread = shared.thread
        self._context = shared.context
        self._inner = inner
        self._policy = handling.policy
        self._pool = handling.pool
        self._acks = Acknowledgements(shared.thread, inner)
        self._prefetch: Prefetch[T_co] = Prefetch(
            shared.thread, inner, run_limit=handling.run_limit, on_fetch=self._acks.take_many
        )
        # Bound, which saves hot paths look-ups; `popleft` raises IndexError when it is empty.
        self._next = self._prefetch.messages.popleft
        self._add_ack = self._acks.messages.append
        shared.parts[self] = None

    def hand_over(self) -> None:
        """Tell the asyncio consumer what threads acknowledged; called in the loop."""
        self._acks.take()

    def _run(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run the coroutine that `work` makes, after what was acknowledged before."""

        async def run() -> T:
            self._acks.take()
            return await work()

        return self._thread.run(run())

    def _call(self, function: Callable[[], T]) -> T:
        """Call a plain function of the asyncio consumer."""

        def call() -> T:
            self._acks.take()
            return function()

        return self._thread.call(call)

    # --- properties ----------------------------------------------------------------------------

    def topic(self) -> str:
        """The full name of the topic; of several, separated by commas."""
        return self._inner.topic()

    def subscription_name(self) -> str:
        """The name of the subscription."""
        return self._inner.subscription_name()

    def consumer_name(self) -> str:
        """The option `consumer_name`, or a generated name."""
        return self._inner.consumer_name()

    def is_connected(self) -> bool:
        """Whether it is registered with its brokers now; it reconnects by itself."""
        return self._inner.is_connected()

    @property
    def is_closed(self) -> bool:
        """Whether `close` or `unsubscribe` began."""
        return self._inner.is_closed

    @property
    def has_reached_end_of_topic(self) -> bool:
        """Whether the topic was terminated and everything was delivered."""
        return self._inner.has_reached_end_of_topic

    def statistics(self) -> ConsumerStatistics:
        """The client's counts of the current interval, and since the consumer was made."""
        return self._call(self._inner.statistics)

    # --- receiving -----------------------------------------------------------------------------

    def receive(self, timeout_millis: int | None = None) -> Message[T_co]:
        """The next message; waits for one.

        Raises:
            ClientTimeoutError: None came within `timeout_millis`.
            AlreadyClosedError: The consumer is closed.
            OperationNotSupportedError: It has a `message_listener`.
            ServiceError, ClientError: The consumer ended for good; the error that ended it.
        """
        # Hot path: consume in `make bench-client`.
        if self._context.closed_error is not None:
            raise self._context.closed_error
        try:
            return self._next()
        except IndexError:
            return self._prefetch.take(timeout_millis)

    def receive_nowait(self) -> Message[T_co] | None:
        """The next message if there is one here, else None. Raises as `receive`."""
        if self._context.closed_error is not None:
            raise self._context.closed_error
        return self._prefetch.take_nowait()

    def batch_receive(self) -> list[Message[T_co]]:
        """Several messages, by `batch_receive_policy`; empty if its time passed without any.

        What `receive` has brought here and nobody took comes alone, before the rest. Raises as
        `receive`.
        """
        if self._context.closed_error is not None:
            raise self._context.closed_error
        here = self._prefetch.take_batch(self._policy)
        return here or self._run(self._batch_receive)

    async def _batch_receive(self) -> list[Message[T_co]]:
        """Several messages, the oldest first: what was brought here meanwhile, or new ones."""
        self._prefetch.stop_feeding()
        here = self._prefetch.take_batch(self._policy)
        return here or await self._inner.batch_receive()

    def __iter__(self) -> Self:
        """Messages until the consumer is closed."""
        return self

    def __next__(self) -> Message[T_co]:
        """The next message."""
        try:
            return self.receive()
        except AlreadyClosedError:
            raise StopIteration from None

    def has_message_available(self) -> bool:
        """Whether there is a message after the last one that was received.

        Raises:
            AlreadyClosedError: The consumer is closed.
            ServiceError, ClientError: The broker refused, or did not answer in time.
        """
        return bool(self._prefetch.messages) or self._run(self._inner.has_message_available)

    # --- acknowledging -------------------------------------------------------------------------

    def acknowledge(self, message: Message | MessageId | Sequence[Message | MessageId]) -> None:
        """Acknowledge messages: they will not be delivered again. See `pulsar_py.Consumer`.

        Without `ack_receipt_enabled` it returns at once.
        """
        # Hot path: consume in `make bench-client`.
        if self._context.closed_error is not None:
            raise self._context.closed_error
        if message.__class__ is Message and self._inner.takes_plain_acks:
            self._add_ack(message)
            if not self._acks.is_due:
                self._acks.wake()
            return
        if self._inner.is_closed:
            raise AlreadyClosedError(f"{self._inner!r}: closed")
        self._run(lambda: self._inner.acknowledge(message))

    def negative_acknowledge(self, message: Message | MessageId) -> None:
        """Deliver this message again, after the delay that was configured.

        Raises:
            AlreadyClosedError: The consumer is closed.
        """
        self._call(lambda: self._inner.negative_acknowledge(message))

    def reconsume_later(
        self,
        message: Message,
        delay_millis: int = 0,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        """Deliver a copy of this message after a delay, by way of the retry topic.

        Raises:
            OperationNotSupportedError: The consumer has no `retry_enable`.
            PulsarError: The copy could not be published; the message stays unacknowledged.
        """
        self._run(lambda: self._inner.reconsume_later(message, delay_millis, properties))

    def redeliver_unacknowledged_messages(self) -> None:
        """Ask for everything again that was delivered and not acknowledged."""

        async def redeliver() -> None:
            async with self._prefetch.dropping():
                self._inner.redeliver_unacknowledged_messages()

        self._run(redeliver)

    # --- pausing -------------------------------------------------------------------------------

    def pause(self) -> None:
        """Ask for no more messages until `resume`; those that are here can be received."""
        self._call(self._inner.pause)

    def resume(self) -> None:
        """Ask for messages again."""
        self._call(self._inner.resume)

    def pause_message_listener(self) -> None:
        """Stop calling the listener until `resume_message_listener`."""
        self._call(self._inner.pause_message_listener)

    def resume_message_listener(self) -> None:
        """Call the listener again."""
        self._call(self._inner.resume_message_listener)

    # --- closing -------------------------------------------------------------------------------

    def unsubscribe(self, *, force: bool = False) -> None:
        """Delete the subscription, with its backlog, and close.

        Args:
            force: Whether to delete it though it has other consumers, which are closed then.

        Raises:
            AlreadyClosedError: The consumer is closed.
            ServiceError, ClientError: The broker refused or did not answer; the consumer is open.
        """
        self._run(lambda: self._inner.unsubscribe(force=force))
        self._prefetch.close()

    def close(self) -> None:
        """Leave the subscription; it stays, and what was not acknowledged is delivered again.

        Threads that wait in `receive` get AlreadyClosedError; calls of a listener that run come to
        their end, but may not acknowledge any more. May be called again.
        """
        self._run(self._close)

    async def _close(self) -> None:
        self._prefetch.close()
        try:
            await self._inner.close()
        finally:
            if self._pool is not None:
                self._pool.close()

    def drain(self) -> None:
        """End without losing what is under way, then close; see `pulsar_py.Consumer.drain`.

        `blocking.timeout` limits it; then it closes nothing.

        Raises:
            AlreadyClosedError: The consumer is closed.
            OperationNotSupportedError: Its own listener called it, and would wait for itself.
        """
        if in_listener(self._pool):
            raise OperationNotSupportedError(
                f"{self!r}: drain in its own listener waits for that listener; use close"
            )

        async def drain() -> None:
            await self._inner.drain()
            await self._close()

        self._run(drain)

    def __repr__(self) -> str:
        return f"blocking.{self._inner!r}"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
