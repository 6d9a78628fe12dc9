"""`AddLanes`: the unanswered add requests of one connection to a bookie (pure).

A bookie answers the adds of a ledger in the order in which it stored them, which is nearly always
that of their sending. So the adds of a ledger are a lane of runs: the answers that come in order
move one number, the run's `next_entry_id`, and nothing is kept for a single entry. Those that come
before it are remembered until the number reaches them.

Answers name ledger and entry alone. So a lane has each entry once, in ascending order: an add of
one that may still be answered, or of one before it, waits until the lane is empty, and what is sent
later to that ledger waits behind it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from pulsar_py.bookkeeper.bookies.requests import AddRequest


class AddLanes:
    """The adds of one connection, by ledger."""

    def __init__(self) -> None:
        self.lanes: dict[int, deque[AddRequest]] = {}
        """Runs with entries that have no answer, in ascending order; none is empty."""
        self._behind: dict[int, deque[AddRequest]] = {}  # wait until the lane is empty

    def __bool__(self) -> bool:
        return bool(self.lanes)

    def begin(self, request: AddRequest) -> bool:
        """Add a run; returns whether it may be sent now."""
        ledger_id = request.ledger_id
        lane = self.lanes.get(ledger_id)
        if lane is None:
            self.lanes[ledger_id] = deque((request,))
            return True
        behind = self._behind.get(ledger_id)
        if behind is None and request.entry_id > lane[-1].last_entry_id:
            lane.append(request)
            return True
        if behind is None:
            behind = self._behind[ledger_id] = deque()
        behind.append(request)
        return False

    def answered(self, ledger_id: int, entry_id: int) -> AddRequest | None:
        """The run of an entry that is answered now; None if no answer to it is awaited."""
        for request in self.lanes.get(ledger_id, ()):
            if request.next_entry_id <= entry_id <= request.last_entry_id:
                break
        else:
            return None
        early = request.early
        if entry_id != request.next_entry_id:
            if early is None:
                early = request.early = set()
            if entry_id in early:
                return None
            early.add(entry_id)
            return request
        request.next_entry_id += 1
        while early and request.next_entry_id in early:
            early.discard(request.next_entry_id)
            request.next_entry_id += 1
        return request

    def end(self, request: AddRequest) -> AddRequest | None:
        """Remove a run that is answered; returns the runs that may be sent now."""
        ledger_id = request.ledger_id
        lane = self.lanes[ledger_id]
        lane.remove(request)
        if lane:
            return None
        behind = self._behind.get(ledger_id)
        if not behind:
            del self.lanes[ledger_id]
            return None
        following = behind.popleft()
        lane.append(following)
        if not behind:
            del self._behind[ledger_id]
        return following

    def sent(self) -> Iterator[AddRequest]:
        """Runs that were sent and have entries without an answer."""
        for lane in self.lanes.values():
            yield from lane

    def take_late(self, now: float) -> list[AddRequest]:
        """Remove and return the waiting runs that have timed out."""
        late = []
        for ledger_id, behind in list(self._behind.items()):
            while behind and behind[0].deadline <= now:
                late.append(behind.popleft())
            if not behind:
                del self._behind[ledger_id]
        return late

    def take_all(self) -> list[AddRequest]:
        """Remove and return all runs, those that were sent first."""
        everything = [*self.sent()]
        everything += [request for behind in self._behind.values() for request in behind]
        self.lanes.clear()
        self._behind.clear()
        return everything
