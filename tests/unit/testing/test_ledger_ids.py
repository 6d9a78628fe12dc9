from __future__ import annotations

from pulsar_py.testing.ledger_ids import CountedLedgerIds


async def test_it_counts_from_where_it_is_told() -> None:
    ids = CountedLedgerIds(7)

    assert [await ids.next(), await ids.next()] == [7, 8]
    assert ids.last == 8
