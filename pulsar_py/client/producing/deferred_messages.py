"""Holds messages, in order, that can't be encoded yet (edge).

A message waits here while its producer opens (a partition that starts lazily), or while the broker
is asked for the version of the message's own schema; and so do all messages behind it. One task
empties the queue. What always holds: messages leave in the order in which they came, each once, by
being sent or by failing.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

from pulsar_py.client.producing.message_builder import OutgoingMessage
from pulsar_py.client.producing.producer_schema import ProducerSchema
from pulsar_py.client.producing.send_result import SendCompletion, SendResult
from pulsar_py.common.errors import PulsarError
from pulsar_py.common.loops.tasks import TaskOwner

__all__ = ["DeferredMessages"]


class DeferredMessages:
    """One producer's queue of messages that can't be encoded yet. Owned by its TopicProducer."""

    def __init__(
        self,
        tasks: TaskOwner,
        values: ProducerSchema,
        *,
        wait_opened: Callable[[], Awaitable[object]],
        go_on: Callable[[OutgoingMessage, int], SendResult],
        give_back: Callable[[int], None],
        on_empty: Callable[[], None],
    ) -> None:
        """Nothing runs before the first `add`.

        Args:
            tasks: The producer's tasks.
            values: Asks brokers for schema versions.
            wait_opened: Returns when the producer was opened. If that fails, the producer calls
                `fail_all` before it returns.
            go_on: Posts a message, given with its reserved bytes.
            give_back: Releases the reserved bytes of a message that failed.
            on_empty: Called when the queue is empty: messages need not wait any more.
        """
        self._tasks = tasks
        self._values = values
        self._wait_opened = wait_opened
        self._go_on = go_on
        self._give_back = give_back
        self._on_empty = on_empty
        # Messages with their reserved bytes and results.
        self._queue: deque[tuple[OutgoingMessage, int, SendCompletion]] = deque()
        self._work: asyncio.Task[None] | None = None  # while the queue is not empty

    def __bool__(self) -> bool:
        return bool(self._queue)

    def add(self, message: OutgoingMessage, size: int) -> SendResult:
        """Put a message into the queue, for which `size` bytes are reserved."""
        completion = SendCompletion()
        self._queue.append((message, size, completion))
        if self._work is None:
            self._work = self._tasks.spawn(self._work_off(), "deferred messages")
        return SendResult(completion)

    async def drained(self) -> None:
        """Return when the queue is empty; failures of messages are not raised here."""
        if self._work is not None:
            await asyncio.wait([self._work])

    async def _work_off(self) -> None:
        try:
            await self._wait_opened()
            while self._queue:
                first = self._queue[0]
                error = await self._prepare(first[0])
                # While the broker was asked, `fail_all` may have ended the message.
                if self._queue and self._queue[0] is first:
                    self._queue.popleft()
                    self._leave(*first, error)
        finally:
            self._work = None
        self._on_empty()

    async def _prepare(self, message: OutgoingMessage) -> Exception | None:
        if self._values.needs_version(message):
            try:
                await self._values.learn_version(message)
            except PulsarError as error:
                return error
        return None

    def _leave(
        self,
        message: OutgoingMessage,
        size: int,
        completion: SendCompletion,
        error: Exception | None,
    ) -> None:
        if error is not None:
            self._give_back(size)
            completion.fail(error)
            return

        def end(result: SendResult) -> None:
            failure = result.exception()
            if failure is not None:
                completion.fail(failure)
            else:
                completion.message_id = message_id = result.result()
                completion.confirm(message_id.ledger_id, message_id.entry_id)

        self._go_on(message, size).add_done_callback(end)

    def fail_all(self, error: Exception) -> None:
        """End all queued messages with this error."""
        queue, self._queue = self._queue, deque()
        for _, size, completion in queue:
            self._give_back(size)
            completion.fail(error)
