"""`WriteQuorum`: decides which entries are confirmed by enough bookies (pure).

An entry goes to its write set: `write_quorum_size` bookies of the ensemble, round-robin. It is
complete once `ack_quorum_size` of them have stored it, and confirmed once it is complete, all
before it are confirmed, and no change of the ensemble is under way. It is released, so that its
bytes may go, once it is confirmed and nobody of its write set owes an answer any more.

If a bookie fails, nothing is confirmed until it is decided what happens with its place. If another
bookie takes it, all entries that are not confirmed are sent to that one; what the failed one had
stored of them does not count, so a complete entry may become incomplete again. If the same bookie
is tried again, it is sent all entries that it has not answered. If the place stays empty, an entry
is complete with the ack quorum of the others.

What always holds: confirmed entries only grow, without gaps; what is not confirmed is not released.

As long as each entry goes to the whole ensemble and each bookie has answered in the order of the
entries, one number for each bookie says all: the last entry that it has stored. Then nothing is
kept or done for a single entry. Once something else happens, the answers are kept by entry, until
what was under way then is confirmed and all is in order again.

Source: PendingAddOp, LedgerHandle.sendAddSuccessCallbacks in Apache BookKeeper.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from pulsar_py.bookkeeper.metadata.ledger_metadata import write_set


class WriteQuorum:
    """The state of the entries of one writer, or of one recovery."""

    def __init__(
        self,
        *,
        ensemble_size: int,
        write_quorum_size: int,
        ack_quorum_size: int,
        last_confirmed: int = -1,
    ) -> None:
        """`last_confirmed` is the entry before the first that will be added."""
        assert 1 <= ack_quorum_size <= write_quorum_size <= ensemble_size
        self._ack_quorum_size = ack_quorum_size
        self._sets = [
            write_set(entry_id, ensemble_size, write_quorum_size)
            for entry_id in range(ensemble_size)
        ]
        self._masks = [sum(1 << index for index in each) for each in self._sets]
        self._through: list[int] | None = None  # by place: it has stored all up to this entry
        # While that says nothing:
        self._stored: dict[int, int] = {}  # of what is not confirmed: who has it, as bits
        self._owed: dict[int, int] = {}  # of what is not released: who owes an answer, as bits
        self._in_order_behind = last_confirmed  # once that is confirmed, all may be in order again
        self._released: list[int] = []  # since they were last taken
        self._released_through = last_confirmed  # while `_through` says all
        self._absent = 0  # places that nobody stands in, as bits
        self.last_added = last_confirmed
        self.last_confirmed = last_confirmed
        self.is_held = False
        """Whether a change of the ensemble is under way, while which nothing is confirmed."""

    def write_set(self, entry_id: int) -> tuple[int, ...]:
        """The places in the ensemble that an entry is sent to."""
        return self._sets[entry_id % len(self._sets)]

    @property
    def pending_count(self) -> int:
        """The number of entries that are not confirmed."""
        return self.last_added - self.last_confirmed

    @property
    def last_settled(self) -> int:
        """The last entry that is released, with all before it."""
        if self._through is not None:
            return min(*self._through, self.last_confirmed)
        return min(next(iter(self._owed), self.last_confirmed + 1) - 1, self.last_confirmed)

    def add(self) -> int:
        """Number one more entry, to be sent to its write set."""
        if self._through is None:
            self._order()
        self.last_added += 1
        if self._through is None:
            self._stored[self.last_added] = 0
            mask = self._masks[self.last_added % len(self._masks)]
            self._owed[self.last_added] = mask & ~self._absent
        return self.last_added

    def add_run(self, count: int) -> int:
        """Number so many more entries, each for the whole ensemble; returns the first one's id."""
        assert self.goes_everywhere
        first = self.add()
        self.last_added += count - 1
        if self._through is None:
            run = range(first, first + count)
            self._stored.update(dict.fromkeys(run, 0))
            self._owed.update(dict.fromkeys(run, self._masks[0] & ~self._absent))
        return first

    @property
    def goes_everywhere(self) -> bool:
        """Whether the write set of each entry is the ensemble."""
        return len(self._sets[0]) == len(self._sets)

    def on_stored(self, entry_ids: Sequence[int], index: int) -> None:
        """The bookie at this place of the ensemble has stored these entries.

        # Hot path: one call for the entries of one read, a range where they are in order.
        """
        if self._through is not None:
            if self._is_in_order(self._through, entry_ids, index):
                return
            self._keep_by_entry()
        bit = 1 << index
        all_stored, all_owed = self._stored, self._owed
        for entry_id in entry_ids:
            stored = all_stored.get(entry_id)
            if stored is not None:
                all_stored[entry_id] = stored | bit
            owed = all_owed.get(entry_id)
            if owed is None:
                continue
            all_owed[entry_id] = owed = owed & ~bit
            if not owed and stored is None:
                del all_owed[entry_id]
                self._released.append(entry_id)

    def advance(self) -> bool:
        """Confirm entries as far as possible; returns whether there were any."""
        if self.is_held:
            return False
        first = self.last_confirmed + 1
        if self._through is not None:
            self.last_confirmed = max(
                sorted(self._through)[-self._ack_quorum_size], self.last_confirmed
            )
            return self.last_confirmed >= first
        next_id = first
        while (stored := self._stored.get(next_id)) is not None:
            if stored.bit_count() < self._ack_quorum_size:
                break
            del self._stored[next_id]
            if not self._owed[next_id]:
                del self._owed[next_id]
                self._released.append(next_id)
            next_id += 1
        self.last_confirmed = next_id - 1
        return next_id > first

    def take_released(self) -> Sequence[int]:
        """The entries released since this was last asked; a range where all is in order."""
        released, self._released = self._released, []
        if self._through is None:
            return released
        in_order = range(self._released_through + 1, self.last_settled + 1)
        self._released_through = max(self.last_settled, self._released_through)
        return [*released, *in_order] if released else in_order

    # Whether one number for each bookie says all

    def _is_in_order(self, through: list[int], entry_ids: Sequence[int], index: int) -> bool:
        """Take the answers of a bookie if they leave none out before them."""
        last = through[index]
        if isinstance(entry_ids, range):
            if entry_ids[0] > last + 1:
                return False
            last = max(last, entry_ids[-1])
        else:
            for entry_id in entry_ids:
                if entry_id > last + 1:
                    return False
                last = max(last, entry_id)
        through[index] = min(last, self.last_added)
        return True

    def _keep_by_entry(self) -> None:
        """From now on keep the answers for each entry."""
        if self._through is None:
            return
        released = self.take_released()
        self._released = [*released]
        through, self._through = self._through, None
        self._in_order_behind = self.last_added
        for entry_id in range(self._released_through + 1, self.last_added + 1):
            stored = sum(1 << index for index, last in enumerate(through) if entry_id <= last)
            self._owed[entry_id] = self._masks[0] & ~stored
            if entry_id > self.last_confirmed:
                self._stored[entry_id] = stored

    def _order(self) -> None:
        """Keep one number for each bookie, if that says all."""
        if (
            self.last_confirmed < self._in_order_behind
            or self._absent
            or self.is_held
            or not self.goes_everywhere
        ):
            return
        self._in_order_behind = self.last_added
        before = next(iter(self._owed), self.last_added + 1) - 1
        if len(self._owed) != self.last_added - before:
            return
        through = [before] * len(self._sets)
        for entry_id, owed in self._owed.items():
            if self._stored.get(entry_id, self._masks[0] & ~owed) != self._masks[0] & ~owed:
                return
            for index in self._sets[0]:
                if not owed & 1 << index:
                    if through[index] != entry_id - 1:
                        return
                    through[index] = entry_id
        self._stored.clear()
        self._owed.clear()
        self._through, self._released_through = through, before

    # Changes of the ensemble

    def give_up(self) -> None:
        """Note that a bookie failed: nothing is confirmed until its place is decided."""
        self.is_held = True

    def _owes_nothing(self, index: int) -> None:
        """Forget the answers that the bookie at this place owes."""
        bit = 1 << index
        for entry_id, owed in list(self._owed.items()):
            if not owed & bit:
                continue
            self._owed[entry_id] = owed & ~bit
            if owed == bit and entry_id not in self._stored:
                del self._owed[entry_id]
                self._released.append(entry_id)

    def do_without(self, indexes: Collection[int]) -> bool:
        """Leave these places empty; returns whether each write set still has an ack quorum."""
        self._keep_by_entry()
        for index in indexes:
            self._absent |= 1 << index
            self._owes_nothing(index)
        return all(
            (mask & ~self._absent).bit_count() >= self._ack_quorum_size for mask in self._masks
        )

    def distrust(self, indexes: Collection[int]) -> None:
        """Do not count what was stored at these places, as far as it is not confirmed.

        Others may stand there in the ledger's record, which nobody knows at the moment.
        """
        self._keep_by_entry()
        mask = ~sum(1 << index for index in indexes)
        for entry_id in self._stored:
            self._stored[entry_id] &= mask

    def restart(self, indexes: Collection[int]) -> list[tuple[int, int]]:
        """Put other bookies in these places; returns the entries to send there, in order."""
        self._keep_by_entry()
        again: list[tuple[int, int]] = []
        for index in indexes:
            self._absent &= ~(1 << index)
            self._owes_nothing(index)
        for entry_id, stored in self._stored.items():
            for index in self.write_set(entry_id):
                if index in indexes:
                    bit = 1 << index
                    stored &= ~bit  # noqa: PLW2901 - of several places
                    self._owed[entry_id] |= bit
                    again.append((entry_id, index))
            self._stored[entry_id] = stored
        return again

    def retry(self, indexes: Collection[int]) -> list[tuple[int, int]]:
        """Keep the bookies at these places; returns the unanswered entries, to be sent again."""
        self._keep_by_entry()
        return [
            (entry_id, index)
            for entry_id, owed in self._owed.items()
            for index in self.write_set(entry_id)
            if index in indexes and owed & 1 << index
        ]

    def resume(self) -> None:
        """End the change of the ensemble: entries are confirmed again."""
        self.is_held = False

    def check(self) -> None:
        """Assert what always holds."""
        if self._through is not None:
            assert not self._stored
            assert not self._owed
            assert self._released_through <= self.last_confirmed <= self.last_added
            assert max(self._through) <= self.last_added
            return
        assert list(self._stored) == list(range(self.last_confirmed + 1, self.last_added + 1))
        assert self._stored.keys() <= self._owed.keys()
        for entry_id, owed in self._owed.items():
            mask = self._masks[entry_id % len(self._masks)]
            assert owed | mask == mask
            assert not owed & self._stored.get(entry_id, 0)
            assert owed or entry_id in self._stored
