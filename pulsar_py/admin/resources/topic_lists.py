"""Answers with the names of topics, within the bytes that all such answers have together.

They share the budget of the binary protocol's lists: one is taken account of before it is read, and
until its caller has been sent it. One for which there is no room in time is refused with 429.

Source: none; Apache Pulsar bounds the lists of the binary protocol alone.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from functools import partial
from typing import TypeVar

from msgspec.structs import replace

from pulsar_py.admin.http_messages import Response, json_response
from pulsar_py.server.broker import BrokerService
from pulsar_py.server.limits.topic_list_budget import list_bytes

__all__ = ["list_response"]


_Names = TypeVar("_Names", bound=Collection[str])


async def list_response(
    broker: BrokerService,
    kind: str,
    read: Callable[[], Awaitable[_Names]],
    value: Callable[[_Names], object] | None = None,
) -> Response:
    """The answer with the names that `read` finds, as `value` makes a body of them.

    Args:
        broker: Its connections own the budget.
        kind: Of one kind, a list is taken to be as long as the last one.
        read: Called once there is room.
        value: What the body has; None: the names alone.

    Raises:
        TooManyRequestsError: There was no room in time, or too many wait.
    """
    budget = broker.connections.topic_lists
    held_bytes = await budget.acquire(kind)
    try:
        names = await read()
        held_bytes = budget.correct(kind, held_bytes, list_bytes(names))
        response = json_response(names if value is None else value(names))
    except BaseException:  # A wait that is cancelled gives its bytes back, too.
        budget.give_back(held_bytes)
        raise
    return replace(response, on_ended=partial(budget.give_back, held_bytes))
