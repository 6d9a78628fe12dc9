"""Keeps the parts of a consumer of several topics: one for each topic or partition (edge).

`TopicParts` opens and closes them, one change at a time: topics that are added together are opened
together or not at all. It knows how many partitions each topic had, and opens those that were added
since.

Source: MultiTopicsConsumerImpl.subscribeAsync, subscribeIncreasedTopicPartitions in Pulsar.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Generic, Protocol, TypeVar

from pulsar_py.common.errors import AlreadyClosedError
from pulsar_py.common.failures import OnFailureAwait
from pulsar_py.common.loops.concurrently import concurrently, each_result
from pulsar_py.common.names import TopicName

__all__ = ["PartRequest", "TopicParts"]

logger = logging.getLogger(__name__)


class Part(Protocol):
    """The calls that `TopicParts` makes to one part."""

    async def close(self) -> None:
        """Close it."""

    def abandon(self) -> None:
        """End it at once, without waiting; may be called after `close`."""


P = TypeVar("P", bound=Part)


@dataclass(frozen=True, slots=True)
class PartRequest:
    """A part to open."""

    topic: str
    """Full name of the topic or partition."""
    parts_count: int
    """The number of parts after this change, by which the receiver queue is divided."""
    is_late: bool
    """Whether it was found after the consumer started, so that all its messages are new."""


class TopicParts(Generic[P]):
    """The parts of one consumer; owned by it."""

    def __init__(
        self,
        open_part: Callable[[PartRequest], Awaitable[P]],
        partitions_count: Callable[[str], Awaitable[int]],
        *,
        on_opened: Callable[[P], None],
        on_closed: Callable[[P], None],
    ) -> None:
        """`on_opened` is called for each new part, `on_closed` before a part is closed."""
        self._open_part = open_part
        self._partitions_count = partitions_count
        self._on_opened = on_opened
        self._on_closed = on_closed
        self._parts: dict[str, P] = {}
        self._by_topic = MappingProxyType(self._parts)
        # Full name of each topic -> number of its partitions; 0: none, or it is one itself.
        self._counts: dict[str, int] = {}
        self._changing = asyncio.Lock()
        self._is_closed = False

    @property
    def by_topic(self) -> Mapping[str, P]:
        """The parts by full name of the topic or partition."""
        return self._by_topic

    @property
    def topics(self) -> tuple[str, ...]:
        """Full names, partitioned topics once."""
        return tuple(self._counts)

    def partitions_of(self, topic: str) -> int:
        """The number of open partitions of a topic; 0 for one without."""
        return self._counts[topic]

    async def add(self, topics: Iterable[str], *, is_late: bool = False) -> None:
        """Open the parts of the topics that have none yet; all of them, or none.

        Raises:
            AlreadyClosedError: `close` began.
            ServiceError, ClientError: The error of the first part that could not be opened.
        """
        async with self._changing:
            self._check_open()
            new = [name for name in dict.fromkeys(topics) if name not in self._counts]
            counts = dict(zip(new, await each_result(self._count, new), strict=True))
            wanted = [part for name in new for part in _part_names(name, 0, counts[name])]
            await self._open_all(wanted, is_late=is_late)
            self._counts.update(counts)

    async def _count(self, topic: str) -> int:
        return 0 if TopicName.parse(topic).is_partition else await self._partitions_count(topic)

    async def _open_all(self, names: list[str], *, is_late: bool) -> None:
        opened: dict[str, P] = {}
        total = len(self._parts) + len(names)

        async def open_one(name: str) -> None:
            opened[name] = await self._open_part(PartRequest(name, total, is_late))

        async with OnFailureAwait(lambda: _close_all(opened.values())):
            await each_result(open_one, names)
            self._check_open()
        self._parts.update(opened)
        for part in opened.values():
            self._on_opened(part)

    def _check_open(self) -> None:
        if self._is_closed:
            raise AlreadyClosedError("the consumer was closed while topics were added")

    async def remove(self, topics: Iterable[str]) -> None:
        """Close the parts of these topics; unknown ones are ignored."""
        async with self._changing:
            for name in topics:
                count = self._counts.pop(name, None)
                if count is not None:
                    await self._close_parts(_part_names(name, 0, count))

    async def _close_parts(self, names: Iterable[str]) -> None:
        parts = [self._parts.pop(name) for name in names if name in self._parts]
        for part in parts:
            self._on_closed(part)
        await _close_all(parts)

    async def update_partitions(self) -> dict[str, int]:
        """Open new partitions of all topics; returns the topics that have some, and their counts.

        A topic whose count is not known, or whose new partitions can't be opened, is tried again at
        the next call.
        """
        async with self._changing:
            grown: dict[str, int] = {}
            asked = [name for name, count in self._counts.items() if count > 0]
            for name, result in zip(asked, await concurrently(self._count, asked), strict=True):
                if isinstance(result, Exception):
                    logger.warning(
                        "%s: partitions unknown", name, extra={"topic": name}, exc_info=result
                    )
                elif result > self._counts[name] and await self._grow(name, result):
                    grown[name] = result
            return grown

    async def _grow(self, name: str, count: int) -> bool:
        try:
            await self._open_all(_part_names(name, self._counts[name], count), is_late=True)
        except Exception:  # tried again at the next call
            logger.warning(
                "%s: new partitions not opened", name, extra={"topic": name}, exc_info=True
            )
            return False
        self._counts[name] = count
        return True

    async def close(self) -> None:
        """Close all parts; may be called again."""
        self._is_closed = True
        async with self._changing:
            self._counts.clear()
            await self._close_parts(list(self._parts))

    def abandon(self) -> None:
        """End all parts at once."""
        self._is_closed = True
        for part in self._parts.values():
            self._on_closed(part)
            part.abandon()
        self._parts.clear()
        self._counts.clear()


def _part_names(topic: str, first: int, count: int) -> list[str]:
    """The full names of a topic's parts from index `first` on."""
    if count == 0:
        return [topic]
    whole = TopicName.parse(topic)
    return [str(whole.partition(index)) for index in range(first, count)]


async def _close_all(parts: Collection[Part]) -> None:
    try:
        await concurrently(_close, parts)
    finally:  # if cancelled: the parts that were not closed yet
        for part in parts:
            part.abandon()


async def _close(part: Part) -> None:
    await part.close()
