"""Doing the same to many things at once, to the end of each (edge).

An error of one does not keep the others from ending, which is what closing and unsubscribing need.
Cancelling cancels all and waits for them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Final, TypeVar

__all__ = ["concurrently", "each_result"]

T = TypeVar("T")
A = TypeVar("A")

_AT_ONCE: Final = 100


async def concurrently(
    work: Callable[[A], Awaitable[T]], items: Iterable[A], *, at_once: int = _AT_ONCE
) -> list[T | Exception]:
    """What `work` gave or raised for each item, in order; at most `at_once` run at a time."""
    limit = asyncio.Semaphore(at_once)

    async def one(item: A) -> T | Exception:
        async with limit:
            try:
                return await work(item)
            except Exception as error:  # noqa: BLE001 - handed on to the caller, in its place
                return error

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one(item)) for item in items]
    return [task.result() for task in tasks]


async def each_result(
    work: Callable[[A], Awaitable[T]], items: Iterable[A], *, at_once: int = _AT_ONCE
) -> list[T]:
    """What `work` gave for each item, in order, when all have ended.

    Raises:
        Exception: The first item's that failed.
    """
    results: list[T] = []
    for result in await concurrently(work, items, at_once=at_once):
        if isinstance(result, Exception):
            raise result
        results.append(result)
    return results
