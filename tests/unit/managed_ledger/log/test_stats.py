"""Statistics are values: they do not follow what they describe."""

from tests.managed_ledger_parts import World, append_all


async def test_a_snapshot_stays_as_it_was():
    ledger = await World().open()
    await ledger.open_cursor("sub")
    before = ledger.internal_stats()
    await append_all(ledger, 3)
    assert before.entries_count == 0
    assert before.cursors["sub"].backlog_count == 0
    assert ledger.internal_stats().cursors["sub"].backlog_count == 3
