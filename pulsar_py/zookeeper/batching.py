"""`ChangeBatches`: gathers the changes of one client into requests of many (edge).

The servers log, sync and tell each other one request of many changes at the price of little more
than one change, so opening or closing many topics at once costs them a fraction. A change is sent
at once where none is under way. Those that come meanwhile, or in the same turn of the loop, go
together when it is answered: nobody waits for a clock.

A request of many is done as a whole or not at all. Where one change in it is refused, none was
made, and each is sent again by itself: then it gets the answer that it would have got alone. Where
the answer is missing, the outcome of all of them is unknown, as it is of one.

What always holds: changes reach the servers in the order of the calls, unless a request of many was
refused; a change that was given up before it was sent is never made.

Source: AbstractBatchedMetadataStore in Pulsar's pulsar-metadata.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Final

from pulsar_py.common.errors import MetadataError, MetadataOutcomeUnknownError
from pulsar_py.common.loops.tasks import TaskOwner
from pulsar_py.zookeeper import jute, messages
from pulsar_py.zookeeper.connection import Answer
from pulsar_py.zookeeper.messages import ErrorCode, Operation

Exchange = Callable[[Operation, bytes, float], Awaitable[Answer]]
"""Sends one request with changes; returns the answer by that time of the loop, or raises
MetadataError."""

GATHERED: Final = frozenset((Operation.CREATE_2, Operation.SET_DATA, Operation.DELETE))
"""What may stand in a request of many; other changes are rare, and sent by themselves."""

_OF_ONE_CHANGE: Final = frozenset(
    (
        ErrorCode.NO_NODE,
        ErrorCode.NO_AUTH,
        ErrorCode.BAD_VERSION,
        ErrorCode.NO_CHILDREN_FOR_EPHEMERALS,
        ErrorCode.NODE_EXISTS,
        ErrorCode.NOT_EMPTY,
        ErrorCode.QUOTA_EXCEEDED,
    )
)
"""Errors that say nothing about the changes beside the refused one."""


@dataclass(slots=True, eq=False)
class _Change:
    """One change, and who waits for its answer."""

    operation: Operation
    record: bytes
    deadline: float  # of the loop
    answer: asyncio.Future[Answer]


class ChangeBatches:
    """The changes of one client that wait or are under way. Owned by it."""

    def __init__(
        self,
        exchange: Exchange,
        tasks: TaskOwner,
        *,
        max_count: int,
        max_bytes: int,
        timeout_seconds: float,
    ) -> None:
        """One request has at most so many changes, and bytes where it has more than one.

        A change is given up `timeout_seconds` after its call. A request ends with the time of its
        oldest change, so those that wait for it, which are younger, are sent in time.
        """
        self._exchange = exchange
        self._tasks = tasks
        self._max_count = max_count
        self._max_bytes = max_bytes
        self._timeout_seconds = timeout_seconds
        self._waiting: deque[_Change] = deque()
        self._under_way: list[_Change] = []
        self._is_sending = False  # a task that sends them runs
        self._is_closed = False
        self.requests_count = 0
        """Requests with changes that were sent so far."""

    async def ask(self, operation: Operation, record: bytes) -> Answer:
        """Have a change made, by itself or with others; returns what the servers said to it.

        Raises:
            MetadataUnavailableError, SessionInDoubtError: It was not made.
            MetadataOutcomeUnknownError: It was sent, and the answer did not come.
        """
        if self._is_closed:
            raise MetadataError("the metadata store is closed")
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._timeout_seconds
        if operation not in GATHERED or self._max_count <= 1:
            self.requests_count += 1
            return await self._exchange(operation, record, deadline)
        change = _Change(operation, record, deadline, loop.create_future())
        self._waiting.append(change)
        if not self._is_sending:
            self._is_sending = True
            self._tasks.spawn(self._send_waiting(), "changes")
        return await change.answer

    def _next(self) -> list[_Change]:
        """The oldest changes that fit into one request; those given up meanwhile are dropped."""
        taken: list[_Change] = []
        size_bytes = 0
        while self._waiting and len(taken) < self._max_count:
            change = self._waiting[0]
            is_wanted = not change.answer.done()
            if is_wanted and taken and size_bytes + len(change.record) > self._max_bytes:
                break
            self._waiting.popleft()
            if is_wanted:
                taken.append(change)
                size_bytes += len(change.record)
        return taken

    async def _send_waiting(self) -> None:
        try:
            while self._waiting:
                self._under_way = self._next()
                await self._send(self._under_way)
        finally:
            self._is_sending = False

    async def _send(self, changes: list[_Change]) -> None:
        """Send some as one request, and hand out the answers."""
        if len(changes) <= 1:
            for change in changes:
                await self._send_alone(change)
            return
        self.requests_count += 1
        record = messages.multi((change.operation, change.record) for change in changes)
        try:
            answer = await self._exchange(Operation.MULTI, record, changes[0].deadline)
            parts = None if answer.error else messages.multi_parts(answer.record)
            if parts is not None and len(parts) != len(changes):
                raise jute.JuteError(f"{len(parts)} answers to {len(changes)} changes")  # noqa: TRY301
        except MetadataError as error:
            _fail(changes, error)
        except jute.JuteError as error:
            _fail(changes, MetadataOutcomeUnknownError(f"the answer can't be read: {error}"))
        else:
            self._hand_out(changes, answer, parts)

    def _hand_out(
        self, changes: list[_Change], answer: Answer, parts: list[jute.RecordReader] | None
    ) -> None:
        """Give each change its part of an answer, or have it sent by itself."""
        for number, change in enumerate(changes):
            if parts is not None:
                _settle(change, Answer(0, parts[number]))
            elif answer.error and answer.error not in _OF_ONE_CHANGE:
                _settle(change, answer)
            elif not self._is_closed:
                self._tasks.spawn(self._send_alone(change), "change")

    async def _send_alone(self, change: _Change) -> None:
        self.requests_count += 1
        try:
            answer = await self._exchange(change.operation, change.record, change.deadline)
        except MetadataError as error:
            _fail([change], error)
        else:
            _settle(change, answer)

    def close(self) -> None:
        """Fail all that wait; the outcome of what was sent is unknown."""
        self._is_closed = True
        closed = "the metadata store is closed"
        _fail(self._under_way, MetadataOutcomeUnknownError(closed))
        _fail(self._waiting, MetadataError(closed))
        self._waiting.clear()


def _settle(change: _Change, answer: Answer) -> None:
    if not change.answer.done():  # its caller may have given up
        change.answer.set_result(answer)


def _fail(changes: Iterable[_Change], error: MetadataError) -> None:
    for change in changes:
        if not change.answer.done():
            change.answer.set_exception(error)
            change.answer.exception()  # its caller may have been cancelled
