"""Runs the same operation for many items, a bounded number at a time, each to its end (edge).

An error of one does not keep the others from ending, which is what closing, periodic jobs and
unsubscribing need. Cancelling cancels all and waits for them. At most `at_once` tasks are started,
however many items there are, and each task yields to the loop between two items, even where the
work never waits.
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
    """Call `work` for each item, at most `at_once` at a time; returns when all have ended.

    The list has what each call returned or raised, in the order of the items.
    """
    waiting = list(items)  # a copy: what `items` is made of may change meanwhile
    results: dict[int, T | Exception] = {}
    places = iter(range(len(waiting)))

    async def one_after_the_other() -> None:
        is_first = True
        for place in places:
            if not is_first:
                await asyncio.sleep(0)  # work that never waits would block the event loop
            is_first = False
            try:
                results[place] = await work(waiting[place])
            except Exception as error:  # noqa: BLE001 - handed on to the caller, in its place
                results[place] = error

    async with asyncio.TaskGroup() as group:
        for _ in range(min(at_once, len(waiting))):
            group.create_task(one_after_the_other())
    return [results[place] for place in range(len(waiting))]


async def each_result(
    work: Callable[[A], Awaitable[T]], items: Iterable[A], *, at_once: int = _AT_ONCE
) -> list[T]:
    """The result of `work` for each item, in order, when all have ended.

    Raises:
        Exception: The error of the first item, in the order of `items`, that failed.
    """
    results: list[T] = []
    for result in await concurrently(work, items, at_once=at_once):
        if isinstance(result, Exception):
            raise result
        results.append(result)
    return results
