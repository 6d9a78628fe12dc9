"""Calls an application's message listener, in order or several calls at a time (edge).

`ListenerRunner` pulls from its consumer and calls the listener, a plain function or a coroutine
function. With `concurrency` above 1 messages of different order keys (see `listener_order`) run at
the same time, those of one key one after the other. A listener's error is logged and its message
negatively acknowledged; acknowledging is left to the listener.

Source: MessageListener, ConsumerBase.triggerListener in Pulsar's Java client.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Protocol

from pulsar_py.client.consuming.listener_order import ListenerOrder, OrderKey, order_key_of
from pulsar_py.client.messages.message import Message
from pulsar_py.client.shared.enums import ConsumerType
from pulsar_py.common.errors import AlreadyClosedError
from pulsar_py.common.loops.tasks import TaskOwner

if TYPE_CHECKING:
    from pulsar_py.client.brokers.client_context import ClientContext

__all__ = ["ListenedConsumer", "Listener", "ListenerRunner", "listener_concurrency"]

logger = logging.getLogger(__name__)

Listener = Callable[[Any, Message], Awaitable[None] | None]
"""Called with the consumer and a message. Any: listeners declare the consumer class they use."""

_CALLS_WITHOUT_BREAK: Final = 32
"""Calls of a plain function after which the runner lets other tasks of the loop run."""


def listener_concurrency(context: ClientContext, wanted: int) -> int:
    """Calls of a listener that may run at once: the larger option of consumer and client."""
    return max(wanted, context.config.message_listener_threads)


class ListenedConsumer(Protocol):
    """The calls that a ListenerRunner makes to its consumer."""

    async def receive_for_listener(self) -> Message:
        """The next message; AlreadyClosedError ends the runner."""

    def negative_acknowledge(self, message: Message) -> object:
        """Ask for it again."""


class ListenerRunner:
    """Calls one consumer's listener; owned by that consumer."""

    def __init__(
        self,
        consumer: ListenedConsumer,
        listener: Listener,
        *,
        name: str,
        consumer_type: ConsumerType,
        concurrency: int = 1,
    ) -> None:
        """Nothing runs before `start`. `name` is the consumer's name in logs."""
        self._consumer = consumer
        self._listener = listener
        self._name = name
        self._consumer_type = consumer_type
        self._concurrency = concurrency
        self._tasks = TaskOwner(f"listener of {name}")
        self._order: ListenerOrder[Message] = ListenerOrder(concurrency)
        # Set unless paused.
        self._may_run = asyncio.Event()
        self._may_run.set()
        self._is_closed = False
        # The tasks whose calls run, and the end of one of them.
        self._calls: dict[asyncio.Task[object] | None, None] = {}
        self._has_ended = asyncio.Event()
        # Set when a message in hand is done.
        self._has_room = asyncio.Event()

    def start(self) -> None:
        """Begin to call the listener."""
        work = self._run_in_order() if self._concurrency == 1 else self._run_in_lanes()
        self._tasks.spawn(work, "pull")

    def pause(self) -> None:
        """Stop calling it until `resume`; calls under way go on."""
        self._may_run.clear()

    def resume(self) -> None:
        """Go on after `pause`."""
        self._may_run.set()

    async def drain(self) -> None:
        """Begin no more calls, and wait for those that run; not for the one it is called from."""
        self._is_closed = True
        self._may_run.clear()
        own = asyncio.current_task()
        while any(task is not own for task in self._calls):
            self._has_ended.clear()
            await self._has_ended.wait()

    async def close(self) -> None:
        """Cancel calls under way and wait for them; not for the one that calls this, if it does."""
        self._is_closed = True
        await self._tasks.close()

    def abandon(self) -> None:
        """Cancel calls under way, without waiting for their end."""
        self._is_closed = True
        self._tasks.abandon()

    async def _next_message(self) -> Message | None:
        """The next message; None at the end."""
        await self._may_run.wait()
        try:
            message = await self._consumer.receive_for_listener()
        except AlreadyClosedError:
            return None
        await self._may_run.wait()  # paused meanwhile: the message waits until `resume`
        return message

    async def _run_in_order(self) -> None:
        calls_count = 0
        while (message := await self._next_message()) is not None:
            await self._call(message)
            calls_count += 1
            if calls_count % _CALLS_WITHOUT_BREAK == 0:
                await asyncio.sleep(0)

    async def _run_in_lanes(self) -> None:
        order = self._order
        while (message := await self._next_message()) is not None:
            order.offer(order_key_of(message, self._consumer_type), message)
            self._start_calls()
            while not order.has_room:
                self._has_room.clear()
                await self._has_room.wait()

    def _start_calls(self) -> None:
        while (item := self._order.take()) is not None:
            order_key, message = item
            self._tasks.spawn(self._call_in_order(order_key, message), "call")

    async def _call_in_order(self, order_key: OrderKey, message: Message) -> None:
        await self._call(message)
        self._order.done(order_key)
        self._has_room.set()
        if not self._is_closed:
            self._start_calls()

    async def _call(self, message: Message) -> None:
        task: asyncio.Task[object] | None = asyncio.current_task()
        self._calls[task] = None
        try:
            waiting = self._listener(self._consumer, message)
            if waiting is not None:
                await waiting
        except Exception:  # the application's code: whatever it raises costs its message only
            logger.exception(
                "message listener failed, %s comes again to %s",
                message.message_id(),
                self._name,
                extra={"consumer": self._name, "message_id": str(message.message_id())},
            )
            self._give_back(message)
        finally:
            del self._calls[task]
            self._has_ended.set()

    def _give_back(self, message: Message) -> None:
        with suppress(AlreadyClosedError):  # closing the consumer gave it back
            self._consumer.negative_acknowledge(message)
