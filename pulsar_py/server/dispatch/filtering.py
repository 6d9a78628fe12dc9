"""`EntryFilters`: decide which of the read entries are delivered, and which indexes of batches.

A chain of filters judges every entry that is not plain; the first verdict other than ACCEPT counts.
An entry is plain if it is one whole readable message of a user, without delay or transaction.
Partly acknowledged batches that pass get the set of their unacknowledged indexes. The subscription
chooses the filters, also those for plain entries (`judges_plain_entries`). Entries past the
`max_read_position` are not read at all.

What always holds: an entry that is dropped for good is acknowledged, one that is held back is kept
by its filter, and no filtered entry costs permits. A filter that stops has seen to it that nothing
from there on is read again.

Source: AbstractBaseDispatcher.filterEntriesForConsumer in Pulsar's broker.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum, auto
from typing import Final, Protocol, cast

from pulsar_py.common.ack_set import to_bits
from pulsar_py.common.position import Position
from pulsar_py.managed_ledger.log.entry import Entry
from pulsar_py.managed_ledger.log.entry_run import EntryRun
from pulsar_py.proto.PulsarMarkers_pb2 import MarkerType
from pulsar_py.server.dispatch.pending_acks import PositionKey
from pulsar_py.wire.entry_summary import (
    PLAIN,
    EntrySummary,
    PlainShape,
    PlainSummary,
    plain_headers_end,
    summarize_entry,
    summarize_parsed,
)

TRANSACTION_MARKERS: Final = frozenset(
    (MarkerType.TXN_COMMITTING, MarkerType.TXN_COMMIT, MarkerType.TXN_ABORT)
)


class Verdict(Enum):
    """A filter's decision about an entry."""

    ACCEPT = auto()  # the next filter decides
    ACKNOWLEDGE = auto()  # never to be delivered to this subscription
    HOLD_BACK = auto()  # not now; the filter releases it later
    STOP = auto()  # neither it nor any entry after it, however often they are read


class DispatchFilter(Protocol):
    """One filter of the chain."""

    @property
    def judges_plain_entries(self) -> bool:
        """Whether it has to judge plain entries, too; then each one is parsed."""

    @property
    def is_of_users(self) -> bool:
        """Whether users' classes decide; what they refuse may count for limits on rates."""

    def judge(self, entry: Entry, summary: EntrySummary) -> Verdict:
        """Decide about one entry; called at most once a read, in the order of positions."""


class MarkerFilter:
    """Drops markers and unreadable entries: they are acknowledged and never delivered."""

    judges_plain_entries = False
    is_of_users = False

    def judge(self, entry: Entry, summary: EntrySummary) -> Verdict:  # noqa: ARG002
        """Accept messages of users."""
        if summary.marker_type >= 0 or not summary.is_readable:
            return Verdict.ACKNOWLEDGE
        return Verdict.ACCEPT


class TransactionStop:
    """Lets nothing pass from the first entry of a transaction on."""

    judges_plain_entries = False
    is_of_users = False

    def __init__(self, on_transaction: Callable[[Position], None]) -> None:
        """`on_transaction` is told the position, and sees to it that nobody reads up to it."""
        self._on_transaction = on_transaction

    def judge(self, entry: Entry, summary: EntrySummary) -> Verdict:
        """Accept what has no transaction's id and is no marker of one."""
        if summary.txn_id is None and summary.marker_type not in TRANSACTION_MARKERS:
            return Verdict.ACCEPT
        self._on_transaction(entry.position)
        return Verdict.STOP


class DelayFilter:
    """Holds delayed messages back by `keep_back` (Shared and Key_Shared only)."""

    judges_plain_entries = False
    is_of_users = False

    def __init__(self, keep_back: Callable[[PositionKey, EntrySummary], bool]) -> None:
        """`keep_back(position, summary)` returns whether it keeps the entry, which has a time."""
        self._keep_back = keep_back

    def judge(self, entry: Entry, summary: EntrySummary) -> Verdict:
        """Accept messages that are due."""
        deliver_at = summary.deliver_at_time_millis
        if deliver_at and self._keep_back((entry.ledger_id, entry.entry_id), summary):
            return Verdict.HOLD_BACK
        return Verdict.ACCEPT


class FilteredEntries:
    """Accepted entries, the unacknowledged indexes of their batches, and the number of messages."""

    __slots__ = ("ack_sets", "entries", "has_chunks", "messages_count", "refused")

    def __init__(
        self,
        entries: Sequence[Entry],
        ack_sets: dict[PositionKey, Sequence[int]] | None,
        messages_count: int,
        *,
        has_chunks: bool = False,
        refused: Sequence[Entry] = (),
    ) -> None:
        self.entries = entries
        self.ack_sets = ack_sets  # None where no entry is acknowledged in part
        self.messages_count = messages_count  # permits that the entries cost
        self.has_chunks = has_chunks  # parts of messages are among them
        self.refused = refused  # what users' filters reject or put off

    def messages_of(self, entry: Entry) -> int:
        """Permits that one of the entries costs."""
        if self.ack_sets is not None:
            words = self.ack_sets.get((entry.ledger_id, entry.entry_id))
            if words is not None:
                return to_bits(words).bit_count()
        return summary_of(entry).messages_count

    def count_within(self, permits: int) -> tuple[int, int]:
        """The first entries until `permits` are used up, by the last one perhaps exceeded.

        Returns their number, and that of their messages.
        """
        entries_count = messages_count = 0
        for entry in self.entries:
            if messages_count >= permits:
                break
            messages_count += self.messages_of(entry)
            entries_count += 1
        return entries_count, messages_count


class EntryFilters:
    """The chain of one subscription; owned by its dispatcher."""

    def __init__(
        self,
        filters: Sequence[DispatchFilter],
        *,
        batch_ack_set: Callable[[Position], Sequence[int] | None],
        acknowledge: Callable[[list[Position]], None],
    ) -> None:
        self._filters = tuple(filters)
        self._judges_plain_entries = any(each.judges_plain_entries for each in filters)
        self._batch_ack_set = batch_ack_set
        self._acknowledge = acknowledge
        self._shape = PlainShape()

    def apply(self, entries: Sequence[Entry]) -> FilteredEntries:
        """Judge a run of entries."""
        # Hot path: tailing consume, catch-up.
        if type(entries) is EntryRun and self._is_plain_run(entries):
            return FilteredEntries(entries, None, len(entries))
        messages_count = 0
        is_plain = not self._judges_plain_entries
        shape = self._shape
        end, mask, pattern = shape.end, shape.mask, shape.pattern
        for entry in entries:
            summary = entry.summary
            if summary is None:
                data = entry.data
                if int.from_bytes(data[:end], "big") & mask == pattern:
                    entry.summary = PLAIN
                    messages_count += 1
                    continue
                headers_end = plain_headers_end(data)
                if headers_end:
                    shape.meet(data, headers_end)
                    end, mask, pattern = shape.end, shape.mask, shape.pattern
                    entry.summary = PLAIN
                    messages_count += 1
                    continue
                summary = entry.summary = summarize_parsed(data)
            messages_count += summary.messages_count  # type: ignore[attr-defined]
            if not summary.is_plain:  # type: ignore[attr-defined]
                is_plain = False
        if is_plain:
            return FilteredEntries(entries, None, messages_count)
        return self._apply_chain(entries)

    def _is_plain_run(self, run: EntryRun) -> bool:
        """Whether all entries of a run are plain, and no filter judges plain ones."""
        if run.is_made or self._judges_plain_entries:
            return False
        if not self._shape.are_plain(run.datas):
            return False
        run.summary = PLAIN
        return True

    def _apply_chain(self, entries: Sequence[Entry]) -> FilteredEntries:
        accepted: list[Entry] = []
        dropped: list[Position] = []
        refused: list[Entry] = []
        ack_sets: dict[PositionKey, Sequence[int]] = {}
        messages_count = 0
        has_chunks = False
        for entry in entries:
            summary = summary_of(entry)
            if self._judges_plain_entries or not summary.is_plain:
                verdict, is_by_users = self._judge(entry, summary)
                if verdict is Verdict.STOP:
                    break
                if verdict is Verdict.ACKNOWLEDGE:
                    dropped.append(entry.position)
                if verdict is not Verdict.ACCEPT:
                    if is_by_users:
                        refused.append(entry)
                    continue
            words = self._batch_ack_set(entry.position) if summary.is_batch else None
            if words is not None:
                ack_sets[entry.ledger_id, entry.entry_id] = words
                messages_count += to_bits(words).bit_count()
            else:
                messages_count += summary.messages_count
            has_chunks |= summary.uuid is not None
            accepted.append(entry)
        if dropped:
            self._acknowledge(dropped)
        return FilteredEntries(
            accepted, ack_sets or None, messages_count, has_chunks=has_chunks, refused=refused
        )

    def _judge(self, entry: Entry, summary: EntrySummary) -> tuple[Verdict, bool]:
        """The first verdict other than ACCEPT, and whether users' filters gave it."""
        for entry_filter in self._filters:
            verdict = entry_filter.judge(entry, summary)
            if verdict is not Verdict.ACCEPT:
                return verdict, entry_filter.is_of_users
        return Verdict.ACCEPT, False


def summary_of(entry: Entry) -> EntrySummary:
    """An entry's summary, parsed once and kept in the entry."""
    summary = entry.summary
    if summary is None:
        summary = entry.summary = summarize_entry(entry.data)
    elif summary is PLAIN:
        summary = entry.summary = PlainSummary(entry.data)
    return cast("EntrySummary", summary)
