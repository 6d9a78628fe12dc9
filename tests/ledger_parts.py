"""What tests of ledger stores and of their users share."""

from __future__ import annotations

from pulsar_py.ledgers.store import LedgerStore


async def all_ledgers(store: LedgerStore) -> list[int]:
    """Ids of all ledgers, from all pages."""
    return [ledger_id async for page in store.list_ledgers() for ledger_id in page]
