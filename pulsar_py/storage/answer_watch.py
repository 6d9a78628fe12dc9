"""AnswerWatch: fails what the disk does not answer in time (edge).

Nothing is counted for an entry or a group. At each look, four in the time that an answer may take,
the watch notes how far the ledgers that wait for the journal have been appended to; what was noted
three looks ago and is still not confirmed is late. So everything is answered within that time, and
nothing is failed before three quarters of it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

from pulsar_py.common.clock import Clock
from pulsar_py.storage.journal import Group, Journal
from pulsar_py.storage.ledgers import Ledger

LOOKS: Final = 4
"""Looks in the time that an answer may take."""


class AnswerWatch:
    """Looks after one journal. Owned by the Bookie."""

    def __init__(
        self,
        journal: Journal,
        clock: Clock,
        *,
        timeout_seconds: float,
        on_late: Callable[[Ledger], None],
    ) -> None:
        """`on_late` fails a ledger's writer, unless that is known already."""
        self._journal = journal
        self._clock = clock
        self._interval_seconds = timeout_seconds / LOOKS
        self._on_late = on_late
        # What waited at the last looks: the group at work, and ledgers with their last entries.
        self._looks: deque[tuple[Group | None, list[tuple[Ledger, int]]]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Look from now on, until `stop`."""
        self._timer = self._clock.call_later(self._interval_seconds, self._look)

    def stop(self) -> None:
        """Look no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        self.start()
        waiting = [(ledger, ledger.last_add_pushed) for ledger in self._journal.waiting()]
        self._looks.append((self._journal.group, waiting))
        if len(self._looks) < LOOKS:
            return
        group, noted = self._looks.popleft()
        if group is not None and group is self._journal.group:
            self._journal.give_up_group()
        for ledger, last_entry_id in noted:
            if ledger.last_add_confirmed < last_entry_id:
                self._on_late(ledger)
