from __future__ import annotations

import pytest

from pulsar_py.common.errors import MigrationError
from pulsar_py.common.loops.clock import SystemClock
from pulsar_py.ledgers.store import LedgerOptions
from pulsar_py.migration.ledger_copy import compare_ledger, copy_ledger
from pulsar_py.storage.bookie import Bookie
from tests.migration_parts import filled_bookie, read, volatile_bookie, write

HELD = [b"entry %d" % number for number in range(1000)]


def doubled(entry_id: int, data: bytes) -> bytes:
    return b"%d " % entry_id + data


async def copied(source: Bookie, target: Bookie) -> int:
    reader = await source.recover(3)
    return await copy_ledger(
        reader, target, 8, options=LedgerOptions(), rewrite=doubled, clock=SystemClock()
    )


WANTED = [doubled(entry_id, data) for entry_id, data in enumerate(HELD)]


async def test_a_ledger_gets_the_id_and_is_closed_where_it_ends() -> None:
    source, target = await filled_bookie({3: HELD}, {3: {}}), await volatile_bookie()
    assert await copied(source, target) == sum(map(len, WANTED))
    assert await read(target, 8) == WANTED
    assert (await target.info(8)).is_closed


async def test_an_empty_ledger_is_one() -> None:
    source, target = await filled_bookie({3: []}, {3: {}}), await volatile_bookie()
    assert await copied(source, target) == 0
    assert (await target.info(8)).last_entry_id == -1


async def test_what_an_earlier_attempt_wrote_is_gone_on_with_and_compared() -> None:
    for begun in (WANTED[:300], WANTED):
        source, target = await filled_bookie({3: HELD}, {3: {}}), await volatile_bookie()
        await write(target, 8, begun, {})
        await copied(source, target)
        assert await read(target, 8) == WANTED
        await copied(source, target)  # it is whole, and compared again


async def test_what_is_not_the_same_is_told() -> None:
    source, target = await filled_bookie({3: HELD}, {3: {}}), await volatile_bookie()
    writer = await write(target, 8, (*WANTED[:500], b"damaged", *WANTED[501:]), {})
    await writer.close()
    with pytest.raises(MigrationError, match="ledger 8: entry 500 is not what was copied"):
        await copied(source, target)


async def test_a_copy_that_ends_elsewhere_is_told() -> None:
    source, target = await filled_bookie({3: HELD}, {3: {}}), await filled_bookie({8: []}, {8: {}})
    reader = await source.recover(3)
    with pytest.raises(MigrationError, match="ledger 8 ends at entry -1, expected 999"):
        await compare_ledger(reader, target, 8, b"", doubled)
