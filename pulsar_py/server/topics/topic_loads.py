"""`TopicLoads`: loads each topic once for all callers, a bounded number at a time (edge).

A load runs as a task of its own: a caller that gives up waiting does not stop it for the others.

Of thousands at the same time none would end before nearly all do; so `LOADS_AT_ONCE` run, in the
order in which they were asked for, and the others wait: half of the topics of a dead broker are
back in half of the time. Most of a load over BookKeeper is some twenty trips to other processes,
one after the other: with 32 at once brokers that took 310 topics over used a fifth of a core each.
What takes longer than `SLOW_SECONDS` waits for something else, a bookie that is gone for instance,
and makes room for the next one, up to the limit of the settings. System topics do not queue up:
other loads may need them.

Source: BrokerService.getTopic, loadOrCreatePersistentTopic in Pulsar's broker.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final

from pulsar_py.common.errors import (
    CorruptDataError,
    NotAllowedError,
    ServiceNotReadyError,
    TopicNotFoundError,
)
from pulsar_py.common.loops.tasks import TaskOwner

if TYPE_CHECKING:
    from pulsar_py.server.topics.topic import Topic


logger = logging.getLogger(__name__)

_CLIENTS_OWN_ERRORS = (NotAllowedError, ServiceNotReadyError, TopicNotFoundError)
"""Errors of single requests, which are not logged: they mean no fault of the broker."""

LOADS_AT_ONCE: Final = 96
"""Loads that share the processor, and hide each other's waiting for the stores."""
SLOW_SECONDS: Final = 1.0
"""After which a load counts no more among those."""

Load = Callable[[], "Coroutine[Any, Any, Topic]"]  # Any: the send type of a coroutine


class TopicLoads:
    """The loads of a broker's topics; owned by the `TopicRegistry`."""

    def __init__(
        self, tasks: TaskOwner, *, timeout_seconds: float, max_concurrent_loads: int
    ) -> None:
        self._tasks = tasks
        self._timeout_seconds = timeout_seconds
        self.max_concurrent_loads = max_concurrent_loads
        self._running_count = 0  # loads that have begun
        self._quick_count = 0  # of those, the ones that have not taken `SLOW_SECONDS` so far
        self._waiting: deque[asyncio.Future[None]] = deque()  # loads whose turn has not come
        self._loads: dict[str, asyncio.Task[Topic | Exception]] = {}

    @property
    def count(self) -> int:
        """Loads under way, those that wait for their turn included."""
        return len(self._loads)

    def is_loading(self, name: str) -> bool:
        """Whether the topic is being loaded now."""
        return name in self._loads

    async def load(self, name: str, load: Load, *, is_urgent: bool = False) -> Topic:
        """The topic that `load` returns, or a load of it that is under way already.

        An urgent one begins at once, however many there are.

        Raises:
            ServiceNotReadyError: It took too long; it may still succeed later.
        """
        task = self._loads.get(name)
        if starts := task is None:
            task = self._tasks.spawn(self._run(name, load, is_urgent=is_urgent), f"load {name}")
            self._loads[name] = task
        try:
            async with asyncio.timeout(self._timeout_seconds):
                outcome = await asyncio.shield(task)
        except TimeoutError:
            if starts:
                reason = f"not loaded within {self._timeout_seconds:g} s"
                logger.warning("topic not loaded", extra={"topic": name, "error": reason})
            raise ServiceNotReadyError(
                f"topic {name} was not loaded within {self._timeout_seconds:g} s"
            ) from None
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async def _run(self, name: str, load: Load, *, is_urgent: bool) -> Topic | Exception:
        """Load a topic in a task. Errors are returned, since no caller may wait any more."""
        try:
            if is_urgent:
                return await load()
            await self._take_slot()
            slot = _Slot(self._on_slow)
            try:
                return await load()
            finally:
                self._running_count -= 1
                if slot.end():
                    self._quick_count -= 1
                self._start_waiting()
        except Exception as error:  # noqa: BLE001 - the task's outermost edge; callers raise it
            _log_failure(name, error)
            return error
        finally:
            del self._loads[name]

    @property
    def _has_room(self) -> bool:
        return self._running_count < self.max_concurrent_loads and self._quick_count < LOADS_AT_ONCE

    def _begin(self) -> None:
        self._running_count += 1
        self._quick_count += 1

    async def _take_slot(self) -> None:
        if self._has_room:
            self._begin()
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn  # The load that ended, and so woke this one, has counted it as running.
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._running_count -= 1
                self._quick_count -= 1
                self._start_waiting()
            raise

    def _on_slow(self) -> None:
        self._quick_count -= 1
        self._start_waiting()

    def _start_waiting(self) -> None:
        while self._waiting and self._has_room:
            turn = self._waiting.popleft()
            if not turn.done():
                self._begin()
                turn.set_result(None)

    def set_max_concurrent_loads(self, count: int) -> None:
        """Use another limit; loads under way go on."""
        self.max_concurrent_loads = count
        self._start_waiting()

    async def settled(self, name: str) -> None:
        """Return when no load of the topic is under way."""
        while (task := self._loads.get(name)) is not None:
            await asyncio.wait([task])


class _Slot:
    """One load among the quick ones, until it ends or becomes slow."""

    def __init__(self, on_slow: Callable[[], None]) -> None:
        self._on_slow = on_slow
        self._is_quick = True
        self._timer = asyncio.get_running_loop().call_later(SLOW_SECONDS, self._become_slow)

    def _become_slow(self) -> None:
        self._is_quick = False
        self._on_slow()

    def end(self) -> bool:
        """Stop the time; whether it was quick until now."""
        self._timer.cancel()
        return self._is_quick


def _log_failure(name: str, error: Exception) -> None:
    """Log a failed load with one line, at ERROR if stored data is damaged."""
    if isinstance(error, _CLIENTS_OWN_ERRORS):
        return
    is_damage = isinstance(error, CorruptDataError) or isinstance(error.__cause__, CorruptDataError)
    level = logging.ERROR if is_damage else logging.WARNING
    logger.log(level, "topic not loaded", extra={"topic": name, "error": str(error) or repr(error)})
