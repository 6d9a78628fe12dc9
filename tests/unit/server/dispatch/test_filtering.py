from __future__ import annotations

from collections.abc import Sequence

from pulsar_py.common.position import Position
from pulsar_py.managed_ledger.log.entry import Entry
from pulsar_py.managed_ledger.log.entry_run import EntryRun
from pulsar_py.server.dispatch.filtering import (
    DelayFilter,
    EntryFilters,
    MarkerFilter,
    Verdict,
    summary_of,
)
from pulsar_py.wire.entry_summary import PLAIN, EntrySummary
from tests.dispatch_parts import message


class Chain:
    """Filters on a cursor of which the test says what is acknowledged in part."""

    def __init__(self, *filters: object, partial: dict[Position, list[int]] | None = None) -> None:
        self.acknowledged: list[Position] = []
        self.partial = partial or {}
        self.filters = EntryFilters(
            filters,  # type: ignore[arg-type]
            batch_ack_set=self.words,
            acknowledge=self.acknowledged.extend,
        )

    def words(self, position: Position) -> Sequence[int] | None:
        return self.partial.get(position)


def entries(*data: bytes) -> list[Entry]:
    return [Entry(1, index, each) for index, each in enumerate(data)]


def test_plain_entries_pass_as_they_are() -> None:
    run = entries(message(), message())
    filtered = Chain(MarkerFilter()).filters.apply(run)
    assert filtered.entries is run
    assert (filtered.ack_sets, filtered.messages_count) == (None, 2)


def test_a_plain_entry_gets_its_summary_when_somebody_asks() -> None:
    run = entries(message(), message())
    Chain(MarkerFilter()).filters.apply(run)
    assert {entry.summary for entry in run} == {PLAIN}
    assert summary_of(run[1]).producer_name == "p"
    assert summary_of(run[1]) is run[1].summary


def test_a_run_of_plain_entries_passes_without_any_of_them_being_made() -> None:
    run = EntryRun(1, 0, [message(sequence_id=each) for each in range(300)])
    filtered = Chain(MarkerFilter()).filters.apply(run)
    assert filtered.entries is run
    assert (filtered.ack_sets, filtered.messages_count) == (None, 300)
    assert not run.is_made
    assert summary_of(run[7]).sequence_id == 7


def test_a_run_with_others_among_plain_entries_is_judged_one_by_one() -> None:
    others = {3: message(batch=5), 5: message(marker_type=21), 7: b"\xff" * 9}
    run = EntryRun(1, 0, [others.get(each, message()) for each in range(10)])
    chain = Chain(MarkerFilter())
    filtered = chain.filters.apply(run)
    assert [entry.entry_id for entry in filtered.entries] == [0, 1, 2, 3, 4, 6, 8, 9]
    assert filtered.messages_count == 12
    assert chain.acknowledged == [(1, 5), (1, 7)]


def test_a_filter_for_plain_entries_sees_those_of_a_run() -> None:
    class Curious:
        judges_plain_entries = True
        is_of_users = True

        def judge(self, entry: Entry, summary: EntrySummary) -> Verdict:
            return Verdict.HOLD_BACK if entry.entry_id == 1 else Verdict.ACCEPT

    run = EntryRun(1, 0, [message(), message(), message()])
    filtered = Chain(MarkerFilter(), Curious()).filters.apply(run)
    assert [entry.entry_id for entry in filtered.entries] == [0, 2]
    assert [entry.entry_id for entry in filtered.refused] == [1]


def test_batches_count_their_messages() -> None:
    filtered = Chain(MarkerFilter()).filters.apply(entries(message(batch=5), message()))
    assert (len(filtered.entries), filtered.messages_count) == (2, 6)


def test_markers_and_garbage_are_acknowledged() -> None:
    chain = Chain(MarkerFilter())
    filtered = chain.filters.apply(entries(message(marker_type=21), message(), b"\xff" * 9))
    assert [entry.entry_id for entry in filtered.entries] == [1]
    assert filtered.refused == []
    assert chain.acknowledged == [(1, 0), (1, 2)]
    assert filtered.messages_count == 1


def test_a_batch_in_part_brings_its_set_and_costs_what_is_left() -> None:
    chain = Chain(MarkerFilter(), partial={Position(1, 1): [0b0101]})
    filtered = chain.filters.apply(entries(message(batch=3), message(batch=3)))
    assert filtered.ack_sets == {(1, 1): [0b0101]}
    assert filtered.messages_count == 5
    assert [filtered.messages_of(entry) for entry in filtered.entries] == [3, 2]


def test_the_delay_filter_keeps_what_its_owner_takes() -> None:
    kept = []

    def keep_back(position: tuple[int, int], summary: EntrySummary) -> bool:
        kept.append((position, summary.deliver_at_time_millis))
        return summary.deliver_at_time_millis > 100

    chain = Chain(MarkerFilter(), DelayFilter(keep_back))
    filtered = chain.filters.apply(
        entries(message(deliver_at_time=50), message(deliver_at_time=500), message())
    )
    assert [entry.entry_id for entry in filtered.entries] == [0, 2]
    assert kept == [((1, 0), 50), ((1, 1), 500)]
    assert chain.acknowledged == []


def test_the_first_verdict_stands() -> None:
    class Refusing:
        judges_plain_entries = True
        is_of_users = False

        def judge(self, entry: Entry, summary: EntrySummary) -> Verdict:
            return Verdict.ACKNOWLEDGE

    kept: list[object] = []
    chain = Chain(Refusing(), DelayFilter(lambda *kept_one: bool(kept.append(kept_one)) or True))
    assert chain.filters.apply(entries(message(), message(deliver_at_time=5))).entries == []
    assert chain.acknowledged == [(1, 0), (1, 1)]
    assert kept == []


def test_an_entry_is_parsed_once() -> None:
    entry = Entry(1, 0, message())
    assert summary_of(entry) is summary_of(entry)
