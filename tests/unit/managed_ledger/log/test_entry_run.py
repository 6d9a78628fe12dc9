"""EntryRun: the bytes of a run, and the entries made of them when they are wanted."""

from pulsar_py.managed_ledger.log.entry import Entry
from pulsar_py.managed_ledger.log.entry_run import EntryRun


def run_of(count):
    return EntryRun(7, 100, [str(each).encode() for each in range(count)])


def test_length_and_ids_need_no_entries():
    run = run_of(5)
    assert (len(run), run.last_entry_id, repr(run)) == (5, 104, "EntryRun(7:100 to 104)")
    assert not run.is_made
    assert not run_of(0)


def test_entries_are_made_once():
    run = run_of(3)
    assert [(each.ledger_id, each.entry_id, each.data) for each in run] == [
        (7, 100, b"0"),
        (7, 101, b"1"),
        (7, 102, b"2"),
    ]
    assert run.is_made
    assert run[1] is list(run)[1]
    assert isinstance(run[-1], Entry)


def test_a_part_shares_what_was_made():
    run = run_of(5)
    early = run[1:3]
    assert isinstance(early, EntryRun)
    assert (early.first_entry_id, list(early.datas)) == (101, [b"1", b"2"])
    assert not early.is_made
    run[0].summary = "seen"
    assert run[:2][0].summary == "seen"
    assert [each.entry_id for each in run[::2]] == [100, 102, 104]


def test_what_is_known_of_all_is_known_of_each():
    run = run_of(3)
    run.summary = "plain"
    assert run.part(1, 2).summary == "plain"
    assert {each.summary for each in run} == {"plain"}
