"""`AnswerWatch`: fails the appends that the disk does not confirm in time (edge).

There is no timer for an entry or a group. Four times within the time-out it notes the last entry id
of each ledger with unconfirmed entries; an entry that was noted three checks ago and is still not
confirmed is late. So every append is answered within the time-out, and none fails before three
quarters of it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

from pulsar_py.common.loops.clock import Clock
from pulsar_py.storage.journal.journal import Group, Journal
from pulsar_py.storage.shared.ledgers import Ledger

LOOKS: Final = 4
"""Checks within one time-out."""


class AnswerWatch:
    """The time-out of one journal's appends. Owned by the Bookie."""

    def __init__(
        self,
        journal: Journal,
        clock: Clock,
        *,
        timeout_seconds: float,
        on_late: Callable[[Ledger], None],
    ) -> None:
        """`on_late` fails a ledger's writer, unless it has failed already."""
        self._journal = journal
        self._clock = clock
        self._interval_seconds = timeout_seconds / LOOKS
        self._on_late = on_late
        # For each of the last checks the group being written, and ledgers with their last entries.
        self._looks: deque[tuple[Group | None, list[tuple[Ledger, int]]]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Start the checks, which go on until `stop`."""
        self._timer = self._clock.call_later(self._interval_seconds, self._look)

    def stop(self) -> None:
        """Stop the checks."""
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
