"""`Reader` without `await`: reads a topic from a chosen position, in any thread.

Messages come through a `Prefetch`; those that were taken are acknowledged when the next run is
fetched, so that the broker's statistics show the progress.

Source: `Reader` of the official Python client.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from pulsar_py.blocking import absent_names
from pulsar_py.blocking.client_parts import ClientParts
from pulsar_py.blocking.listener_pool import ListenerPool
from pulsar_py.blocking.prefetch import Prefetch
from pulsar_py.client.messages.message import Message
from pulsar_py.client.messages.topic_message_id import SeekTarget, TopicMessageId
from pulsar_py.client.reading import reader
from pulsar_py.client.shared.absent_names import lacks
from pulsar_py.client.shared.statistics import ConsumerStatistics
from pulsar_py.client.shared.type_variables import T_co
from pulsar_py.common.errors import AlreadyClosedError, OperationNotSupportedError
from pulsar_py.common.loops.tasks import TaskOwner

__all__ = ["Reader"]

T = TypeVar("T")


@lacks(absent_names.READER)
class Reader(Generic[T_co]):
    """Reads one topic, or all partitions of one, in any thread. Made by `Client.create_reader`."""

    def __init__(
        self,
        shared: ClientParts,
        inner: reader.Reader[T_co],
        *,
        run_limit: int,
        pool: ListenerPool | None,
    ) -> None:
        """Take over an open reader; called in the loop. `pool`: the thread of its listener."""
        self._shared = shared
        self._thread = shared.thread
        self._context = shared.context
        self._inner = inner
        self._pool = pool
        self._prefetch: Prefetch[T_co] = Prefetch(
            shared.thread,
            inner.consumer,
            run_limit=run_limit,
            on_fetch=self.hand_over,
            is_told_of_reads=True,
        )
        self._tasks = TaskOwner(f"reader of {inner.topic()}")
        # The last message that was acknowledged.
        self._acknowledged: Message[T_co] | None = None
        shared.parts[self] = None

    def hand_over(self) -> None:
        """Acknowledge what threads have taken; called in the loop."""
        taken = self._prefetch.last_taken
        if taken and taken[-1] is not self._acknowledged and not self._inner.is_closed:
            self._acknowledged = taken[-1]
            for message in {each.topic_name(): each for each in taken}.values():
                work = self._inner.consumer.acknowledge_cumulative(message)
                self._tasks.spawn(work, "acknowledge")

    def _run(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        return self._thread.run(work())

    def topic(self) -> str:
        """The topic's full name."""
        return self._inner.topic()

    def topics(self) -> list[str]:
        """The full names of the topic, or of its partitions, that are read."""
        return self._thread.call(self._inner.topics)

    def subscription_name(self) -> str:
        """The name of the reader's subscription in the broker's statistics."""
        return self._inner.subscription_name()

    def is_connected(self) -> bool:
        """Whether it is registered with its brokers now; it reconnects by itself."""
        return self._inner.is_connected()

    @property
    def is_closed(self) -> bool:
        """Whether `close` began."""
        return self._inner.is_closed

    @property
    def has_reached_end_of_topic(self) -> bool:
        """Whether the topic was terminated and everything was delivered."""
        return self._inner.has_reached_end_of_topic

    def statistics(self) -> ConsumerStatistics:
        """Statistics of the reader."""
        return self._thread.call(self._inner.statistics)

    def read_next(self, timeout_millis: int | None = None) -> Message[T_co]:
        """The next message; waits for one.

        Raises:
            ClientTimeoutError: None came within `timeout_millis`.
            AlreadyClosedError: The reader is closed.
            OperationNotSupportedError: It has a `reader_listener`.
        """
        self._check_may_read()
        return self._prefetch.take(timeout_millis)

    def read_nowait(self) -> Message[T_co] | None:
        """The next message that is here, None if there is none; does not wait for messages.

        Raises:
            AlreadyClosedError: The reader is closed.
            OperationNotSupportedError: It has a `reader_listener`.
        """
        self._check_may_read()
        return self._prefetch.take_nowait()

    def _check_may_read(self) -> None:
        if self._context.closed_error is not None:
            raise self._context.closed_error
        if self._pool is not None:
            raise OperationNotSupportedError(
                f"reader of {self.topic()}: reading is not allowed with a reader_listener"
            )

    def has_message_available(self) -> bool:
        """Whether there is a message after the last one that was read.

        Raises:
            AlreadyClosedError: The reader is closed.
            ServiceError, ClientError: The broker refused, or did not answer in time.
        """
        return bool(self._prefetch.messages) or self._run(self._inner.has_message_available)

    def seek(self, target: SeekTarget) -> None:
        """Go to earliest, latest, a message, or a time; see `pulsar_py.Reader.seek`.

        A function among the arguments is called in the client's thread, and must not block.
        """

        async def seek() -> None:
            async with self._prefetch.dropping():
                await self._inner.seek(target)

        self._run(seek)

    def get_last_message_ids(self) -> list[TopicMessageId]:
        """The last message of the topic, or of each partition.

        Raises as `has_message_available`.
        """
        return self._run(self._inner.get_last_message_ids)

    def __iter__(self) -> Self:
        """Messages until the reader is closed."""
        return self

    def __next__(self) -> Message[T_co]:
        """The next message."""
        try:
            return self.read_next()
        except AlreadyClosedError:
            raise StopIteration from None

    def close(self) -> None:
        """Leave the topic. May be called again."""
        self._run(self._close)

    async def _close(self) -> None:
        self.hand_over()
        await self._tasks.drain()
        self._prefetch.close()
        try:
            await self._inner.close()
        finally:
            if self._pool is not None:
                self._pool.close()

    def __repr__(self) -> str:
        return f"blocking.{self._inner!r}"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
