from __future__ import annotations

import pytest

from pulsar_py.common.errors import StorageError
from pulsar_py.common.loops.clock import SystemClock
from pulsar_py.common.position import Position
from pulsar_py.ledgers.store import LedgerOptions
from pulsar_py.migration.cursor_states import ComparedState, compared, cursor_states
from pulsar_py.migration.renumbering import Renumbering
from tests.migration_parts import COMPACTED, DATA, LAST, TOPIC, keys, small_contents

RECORDS = {path: value for path, value in keys().items() if path.startswith(f"{TOPIC}/")}


async def test_a_state_is_that_of_the_cursor_ledger() -> None:
    contents = await small_contents()
    states = await cursor_states(RECORDS, contents.store, SystemClock(), LedgerOptions())
    path = f"{TOPIC}/sub"
    assert compared(path, states[path]) == ComparedState(Position(DATA, 0), [(LAST, 0, 0)], [], {})
    assert compared(path, states[path], Renumbering(10)) == ComparedState(
        Position(DATA + 10, 0), [(LAST + 10, 0, 0)], [], {}
    )


async def test_the_compacted_ledger_is_one_and_a_producer_s_number_is_none() -> None:
    contents = await small_contents()
    states = await cursor_states(RECORDS, contents.store, SystemClock(), LedgerOptions())
    path = f"{TOPIC}/__compaction"
    by = Renumbering(10)
    assert compared(path, states[path], by).properties == {"CompactedTopicLedger": COMPACTED + 10}
    other = compared(f"{TOPIC}/other", states[path], by)
    assert other.properties == {"CompactedTopicLedger": COMPACTED}


async def test_the_password_is_that_of_the_settings() -> None:
    contents = await small_contents()
    with pytest.raises(StorageError, match="password"):
        await cursor_states(
            RECORDS, contents.store, SystemClock(), LedgerOptions(password=b"wrong")
        )
