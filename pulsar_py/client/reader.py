"""Reading a topic from a chosen position, without a stored subscription (edge)."""

from __future__ import annotations

from typing import Any

from pulsar_py.client.client_context import ClientContext
from pulsar_py.common.message_id import MessageId

__all__ = ["Reader", "create_reader"]


class Reader:
    """Reads one topic, or all partitions of one."""


async def create_reader(
    context: ClientContext, topic: str, start_message_id: MessageId | None = None, **options: Any
) -> Reader:
    """An open reader; see `Client.create_reader`."""
    raise NotImplementedError
