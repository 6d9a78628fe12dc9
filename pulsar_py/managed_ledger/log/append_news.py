"""`AppendNews`: reports the outcome of appends to the listener, and to waiters for one entry.

Contexts of `append` go to the listener a group at a time. `append_and_wait` puts a context of its
own among them; while there are any, groups are split around them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar, cast

from pulsar_py.common.position import Position

C = TypeVar("C")
C_contra = TypeVar("C_contra", contravariant=True)


class AppendListener(Protocol[C_contra]):
    """The callbacks for the outcome of appended entries; implemented by the topic.

    Called on the loop, never from inside `append`.
    """

    def on_appended(
        self, ledger_id: int, first_entry_id: int, contexts: Sequence[C_contra]
    ) -> None:
        """Entries with consecutive ids are durable; called once a group, in order of appending."""

    def on_append_failed(self, contexts: Sequence[C_contra], error: Exception) -> None:
        """Entries are not stored and never will be; entries appended later may still be stored."""

    def on_fenced(self, error: Exception) -> None:
        """Another owner has the managed ledger; called once, after pending entries failed."""


class Waiter:
    """The context of an `append_and_wait`."""

    __slots__ = ("done",)

    def __init__(self) -> None:
        self.done: asyncio.Future[Position] = asyncio.get_running_loop().create_future()


class AppendNews(Generic[C]):
    """The listener and the waiters of one managed ledger. Owned by it."""

    def __init__(self) -> None:
        self.listener: AppendListener[C] | None = None
        self.waiters_count = 0  # among the pending contexts

    def appended(self, ledger_id: int, first_entry_id: int, contexts: list[C | Waiter]) -> None:
        """Report a durable group. Hot path: publish, once a group."""
        if self.waiters_count:
            self._answer_waiters(ledger_id, first_entry_id, contexts)
        else:
            # Without waiters, all contexts belong to the listener.
            self._tell(ledger_id, first_entry_id, cast("list[C]", contexts))

    def _answer_waiters(
        self, ledger_id: int, first_entry_id: int, contexts: list[C | Waiter]
    ) -> None:
        run: list[C] = []
        for entry_id, context in enumerate(contexts, first_entry_id):
            if not isinstance(context, Waiter):
                run.append(context)
                continue
            self._tell(ledger_id, entry_id - len(run), run)
            run = []
            self.waiters_count -= 1
            if not context.done.done():
                context.done.set_result(Position(ledger_id, entry_id))
        self._tell(ledger_id, first_entry_id + len(contexts) - len(run), run)

    def _tell(self, ledger_id: int, first_entry_id: int, contexts: list[C]) -> None:
        if contexts and self.listener is not None:
            self.listener.on_appended(ledger_id, first_entry_id, contexts)

    def failed(self, contexts: list[C | Waiter], error: Exception) -> None:
        """Report entries that are not stored."""
        others: list[C] = []
        for context in contexts:
            if not isinstance(context, Waiter):
                others.append(context)
                continue
            self.waiters_count -= 1
            if not context.done.done():
                context.done.set_exception(error)
        if others and self.listener is not None:
            self.listener.on_append_failed(others, error)

    def fenced(self, error: Exception) -> None:
        """Report that another owner has the managed ledger."""
        if self.listener is not None:
            self.listener.on_fenced(error)
