"""Handing messages to an application's function: in order, or several at a time (edge).

`ListenerRunner` pulls from its consumer and calls the listener, a plain function or a coroutine
function. With `concurrency` above 1 messages of different lanes run at the same time; those of one
lane (a key, or on ordered subscriptions a topic's messages without key) one after the other. A
listener's error is logged and its message negatively acknowledged; acknowledging is the listener's.

Source: MessageListener, ConsumerBase.triggerListener in Pulsar's Java client.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from pulsar_py.client.enums import ConsumerType
from pulsar_py.client.message import Message

__all__ = ["ListenedConsumer", "Listener", "ListenerRunner"]

Listener = Callable[[Any, Message], Awaitable[None] | None]
"""Called with the consumer and the message. Any: the consumer's class is the application's affair."""


class ListenedConsumer(Protocol):
    """What is needed of a consumer."""

    async def receive(self) -> Message:
        """The next message; AlreadyClosedError ends the runner."""

    def negative_acknowledge(self, message: Message) -> None:
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
        """Take the parts; nothing runs before `start`. `name` stands in logs."""
        raise NotImplementedError

    def start(self) -> None:
        """Begin to call the listener."""
        raise NotImplementedError

    def pause(self) -> None:
        """Call it no more until `resume`; calls that run go on."""
        raise NotImplementedError

    def resume(self) -> None:
        """Go on after `pause`."""
        raise NotImplementedError

    async def close(self) -> None:
        """Cancel what runs, and wait for it. Called from the listener, it leaves that one be."""
        raise NotImplementedError
