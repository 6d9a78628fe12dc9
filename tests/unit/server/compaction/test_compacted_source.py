"""A reader's way from the compacted ledger to the topic, on a real cursor."""

from __future__ import annotations

import pytest

from pulsar_py.common.errors import LedgerNotFoundError, StoreUnavailableError
from pulsar_py.common.position import EARLIEST, LATEST, Position
from pulsar_py.managed_ledger.managed_ledger import InitialPosition
from pulsar_py.server.compaction.compacted_ledger import CompactedLedger
from pulsar_py.server.compaction.compacted_source import CompactedSource
from tests.managed_ledger_parts import MANY, World, append_all
from tests.unit.server.compaction.stored import compacted_ledger, texts

OLD = [(0, 1), (0, 5)]
"""Kept messages whose originals are gone."""


class Reading:
    """A topic of six entries, a cursor at its begin, and what its compactions made."""

    async def open(self, start: Position | None = EARLIEST) -> Reading:
        self.world = World()
        self.ledger = await self.world.open()
        self.positions = await append_all(self.ledger, 6)
        self.cursor = self.ledger.new_non_durable_cursor("reader", InitialPosition.EARLIEST)
        self.compacted: CompactedLedger | None = None
        self.missing: list[CompactedLedger] = []
        self.source = CompactedSource(
            self.cursor, lambda: self.compacted, self._on_missing, start=start
        )
        return self

    def _on_missing(self, compacted: CompactedLedger) -> None:
        self.missing.append(compacted)
        self.compacted = None

    async def compact(self, *kept: tuple[int, int], up_to: int) -> CompactedLedger:
        """Compact up to the entry `up_to`; these messages are left."""
        horizon = self.positions[up_to]
        self.compacted = await compacted_ledger(self.world.store, kept, horizon)
        return self.compacted

    async def rest(self) -> list[str]:
        found = []
        while self.source.has_more_entries():
            found += texts(await self.source.read(2, 1_000_000))
        return found


async def test_up_to_the_horizon_it_is_the_compacted_ledger_then_the_topic() -> None:
    reading = await Reading().open()
    third = reading.positions[2]
    await reading.compact(*OLD, third, up_to=3)
    assert reading.source.read_cached(*MANY) is None
    assert await reading.rest() == ["0:1", "0:5", str(third), "m4", "m5"]


async def test_nothing_was_kept() -> None:
    reading = await Reading().open()
    await reading.compact(up_to=5)
    assert await reading.rest() == []
    assert reading.cursor.read_position > reading.positions[5]


async def test_a_compaction_meanwhile_takes_effect_with_the_next_read() -> None:
    reading = await Reading().open()
    await reading.compact(*OLD, up_to=0)
    assert texts(await reading.source.read(1, 1_000_000)) == ["0:1"]
    fourth = reading.positions[4]
    await reading.compact((0, 1), fourth, up_to=4)
    assert await reading.rest() == [str(fourth), "m5"]


@pytest.mark.parametrize("is_cached", [False, True])
async def test_what_came_from_the_topic_does_not_come_again_after_a_compaction(
    *, is_cached: bool
) -> None:
    reading = await Reading().open()
    source = reading.source
    first = source.read_cached(4, 1_000_000) if is_cached else await source.read(4, 1_000_000)
    assert first is not None
    assert texts(first) == ["m0", "m1", "m2", "m3"]
    await reading.compact(reading.positions[0], reading.positions[4], up_to=4)
    assert await reading.rest() == [str(reading.positions[4]), "m5"]


async def test_nor_after_a_start_behind_the_horizon() -> None:
    reading = await Reading().open()
    await reading.compact(*OLD, up_to=1)
    reading.source.seek(reading.positions[2])
    reading.source.on_reset(reading.positions[2])
    assert texts(await reading.source.read(2, 1_000_000)) == ["m2", "m3"]
    await reading.compact(*OLD, reading.positions[2], up_to=5)
    assert await reading.rest() == []


async def test_a_ledger_that_is_gone_is_reported_and_the_topic_read() -> None:
    reading = await Reading().open()
    gone = await reading.compact(*OLD, up_to=3)
    await reading.world.store.delete(gone.ledger_id)
    assert await reading.rest() == ["m0", "m1", "m2", "m3", "m4", "m5"]
    assert reading.missing == [gone]
    await reading.compact(*OLD, reading.positions[0], up_to=5)
    assert await reading.rest() == []


async def test_a_ledger_that_cannot_be_read_now_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reading = await Reading().open()
    compacted = await reading.compact(*OLD, up_to=3)

    async def refuse(*_: object) -> None:
        raise StoreUnavailableError("no bookies")

    monkeypatch.setattr(compacted, "read", refuse)
    with pytest.raises(StoreUnavailableError):
        await reading.source.read(*MANY)
    assert reading.missing == []
    monkeypatch.undo()
    assert (await reading.rest())[0] == "0:1"


async def test_the_former_ledger_may_go_while_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    reading = await Reading().open()
    former = await reading.compact(*OLD, up_to=3)

    async def replaced(*_: object) -> None:
        await reading.compact((0, 5), up_to=4)
        raise LedgerNotFoundError("deleted")

    monkeypatch.setattr(former, "read", replaced)
    assert await reading.rest() == ["0:5", "m5"]
    assert reading.missing == []


async def test_a_read_during_which_it_is_moved_has_no_effect(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reading = await Reading().open()
    compacted = await reading.compact(*OLD, up_to=3)
    read = compacted.read

    async def moved(index: int, max_entries: int, max_bytes: int) -> object:
        entries = await read(index, max_entries, max_bytes)
        monkeypatch.undo()
        reading.source.seek(reading.positions[4])
        return entries

    monkeypatch.setattr(compacted, "read", moved)
    assert texts(await reading.source.read(*MANY)) == []
    assert await reading.rest() == ["m4", "m5"]


async def test_rewinding_begins_at_the_start_until_something_is_acknowledged() -> None:
    reading = await Reading().open()
    kept = reading.positions[3]
    await reading.compact(*OLD, kept, up_to=3)
    await reading.rest()
    reading.source.rewind()
    assert await reading.rest() == ["0:1", "0:5", str(kept), "m4", "m5"]
    reading.cursor.acknowledge_cumulative(reading.positions[1])
    reading.source.rewind()
    assert await reading.rest() == [str(kept), "m4", "m5"]


async def test_what_was_acknowledged_by_itself_is_left_out() -> None:
    reading = await Reading().open()
    some = reading.positions[1:4]
    await reading.compact(*OLD, *some, up_to=3)
    reading.cursor.acknowledge([some[1]])
    assert await reading.rest() == ["0:1", "0:5", str(some[0]), str(some[2]), "m4", "m5"]


async def test_a_reset_to_the_end_reads_nothing_of_before() -> None:
    reading = await Reading().open()
    await reading.compact(*OLD, up_to=3)
    await reading.cursor.reset(LATEST)
    reading.source.on_reset(LATEST)
    assert await reading.rest() == []
    await reading.cursor.reset(EARLIEST)
    reading.source.on_reset(EARLIEST)
    assert await reading.rest() == ["0:1", "0:5", "m4", "m5"]
