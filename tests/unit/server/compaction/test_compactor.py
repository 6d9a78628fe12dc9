"""What stays by which rules."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest

from pulsar_py.common.disks.memory_disk import MemoryDisk
from pulsar_py.common.errors import StorageError
from pulsar_py.common.loops.pace import Pace
from pulsar_py.common.loops.tasks import TaskOwner
from pulsar_py.common.position import Position
from pulsar_py.managed_ledger.log.entry import Entry
from pulsar_py.proto.PulsarApi_pb2 import MessageMetadata
from pulsar_py.server.compaction.compactor import MESSAGES_A_TURN, CompactionRules, Compactor
from pulsar_py.server.compaction.keyed_messages import examine, examine_small
from pulsar_py.testing.clock import VirtualClock
from pulsar_py.wire.payload import encode_entry
from tests.unit.server.compaction.parts import (
    GivenInput,
    GivenWriter,
    as_entries,
    compacted,
    decoded,
)
from tests.unit.server.compaction.test_keyed_messages import batch


def entry(number: int, key: str | None, data: bytes = b"v", **fields: object) -> Entry:
    head = MessageMetadata(producer_name="p", sequence_id=number, publish_time=1, **fields)
    if key is not None:
        head.partition_key = key
    return Entry(1, number, encode_entry(head, data))


async def kept(entries: list[Entry], rules: CompactionRules | None = None) -> list[int]:
    records, _ = await compacted(entries, rules)
    return [record.position.entry_id for record in decoded(records)]


async def test_messages_without_a_key_go_unless_they_are_retained() -> None:
    entries = [entry(0, None), entry(1, "a"), entry(2, None, b""), entry(3, "a")]
    assert await kept(entries) == [3]
    assert await kept(entries, CompactionRules(retains_null_keys=True)) == [0, 2, 3]


async def test_by_event_time_the_latest_stays_and_of_equal_ones_the_last() -> None:
    entries = [
        entry(0, "a", event_time=9),
        entry(1, "a", event_time=5),
        entry(2, "b", event_time=3),
        entry(3, "b", event_time=3),
        entry(4, "c", event_time=7),
        entry(5, "c", b"", event_time=8),
        entry(6, "c", event_time=6),
        entry(7, "d", event_time=4),
        entry(8, "d"),
    ]
    assert await kept(entries, CompactionRules(is_by_event_time=True)) == [0, 3, 7]
    assert await kept(entries) == [1, 3, 6, 8]


def chunk(number: int, uuid: str, index: int, count: int, key: str | None = "a") -> Entry:
    return entry(number, key, uuid=uuid, chunk_id=index, num_chunks_from_msg=count)


async def test_chunks_stay_or_go_with_their_message() -> None:
    entries = [
        chunk(0, "u", 0, 2),
        chunk(1, "v", 0, 2, "b"),
        chunk(2, "u", 1, 2),
        chunk(3, "v", 1, 2, "b"),
        chunk(4, "v", 1, 2, "b"),  # sent again
        entry(5, "a"),
        chunk(6, "w", 1, 2, "c"),  # its begin is gone
        chunk(7, "x", 0, 3, "b"),  # its end has not come
        chunk(8, "y", 0, 2, None),
        chunk(9, "y", 1, 2, None),
    ]
    assert await kept(entries) == [1, 3, 5, 7]
    assert await kept(entries, CompactionRules(retains_null_keys=True)) == [1, 3, 5, 7, 8, 9]


async def test_more_incomplete_messages_than_fit_the_memory_stay_and_hide_no_tombstone() -> None:
    entries = [
        chunk(0, "u", 0, 2),
        chunk(1, "v", 0, 2, "b"),  # u does not fit any more
        chunk(2, "u", 1, 2),
        entry(3, "a", b""),
        chunk(4, "v", 1, 2, "b"),
        entry(5, "c"),
        entry(6, "c"),
    ]
    assert await kept(entries) == [1, 4, 6]
    records, compactor = await compacted(entries, memory_bytes=8 * 500)
    assert [record.position.entry_id for record in decoded(records)] == [0, 1, 2, 3, 4, 6]
    assert compactor.compacted_to == Position(1, 6)
    again, _ = await compacted(as_entries(records))
    assert [record.position.entry_id for record in decoded(again)] == [1, 4, 6]


async def test_counts_say_what_was_left_out() -> None:
    entries = [entry(number, f"k{number % 3}") for number in range(10)]
    _, compactor = await compacted(entries)
    assert (compactor.counts.messages_read, compactor.counts.messages_removed) == (10, 7)
    assert compactor.compacted_to == Position(1, 9)


async def test_messages_of_batches_count_for_the_turns_of_both_phases() -> None:
    entries = [
        Entry(
            1, number, batch(*[({"partition_key": f"{number}-{each}"}, b"v") for each in range(50)])
        )
        for number in range(20)
    ]
    turns_count = 0

    async def other() -> None:
        nonlocal turns_count
        while True:
            turns_count += 1
            await asyncio.sleep(0)

    tasks = TaskOwner("others")
    tasks.spawn(other(), "take turns")
    records, _ = await compacted(entries)
    await tasks.close()
    assert len(records) == 20
    messages_count = 20 * 50
    assert turns_count >= 2 * messages_count // (MESSAGES_A_TURN + 50)


class _ChangedInput(GivenInput):
    """An input that has lost an entry when it is read again."""

    async def entries(self) -> AsyncIterator[Sequence[Entry]]:
        async for some in super().entries():
            yield some
        del self._entries[2]


async def test_what_was_changed_between_the_phases_is_not_taken_over() -> None:
    source = _ChangedInput([entry(number, f"k{number}") for number in range(5)])
    pace = Pace(VirtualClock())
    compactor = Compactor(
        source, CompactionRules(), MemoryDisk, "runs", memory_bytes=1000, pace=pace
    )
    await compactor.find_survivors()
    with pytest.raises(StorageError, match="up to number 4, the first one up to 5"):
        await compactor.write(GivenWriter(), -1)
    await compactor.close()


async def test_a_batch_that_cannot_be_opened_moves_no_index_of_those_behind_it() -> None:
    head = MessageMetadata(
        producer_name="p", sequence_id=1, publish_time=1, num_messages_in_batch=7
    )
    entries = [
        Entry(1, 0, batch(*[({"partition_key": key}, b"v") for key in "abc"])),
        Entry(1, 1, encode_entry(head, b"no batch")),
        Entry(1, 2, batch(*[({"partition_key": key}, b"v") for key in "bd"])),
        entry(3, "d"),
    ]
    records, _ = await compacted(entries)
    assert [record.position.entry_id for record in decoded(records)] == [0, 1, 2, 3]
    left = [examine(record.message).messages for record in decoded(records)]
    assert [[message.key for message in each] for each in left] == [
        [b"a", b"c"],
        [],
        [b"b"],
        [b"d"],
    ]


async def test_a_batch_of_tens_of_thousands_is_opened_while_others_have_turns() -> None:
    count = 20_000
    large = batch(*[({"partition_key": f"{each // 2}"}, b"v") for each in range(count)])
    turns_count = 0

    async def other() -> None:
        nonlocal turns_count
        while True:
            turns_count += 1
            await asyncio.sleep(0)

    tasks = TaskOwner("others")
    tasks.spawn(other(), "take turns")
    records, compactor = await compacted([Entry(1, 0, large)], memory_bytes=1 << 24)
    await tasks.close()
    (record,) = decoded(records)
    assert len(examine(record.message).messages) == count // 2
    assert compactor.counts.messages_removed == count // 2
    assert turns_count >= count // MESSAGES_A_TURN


def test_a_batch_is_large_by_what_its_metadata_say() -> None:
    data = batch(*[({"partition_key": f"{each}"}, b"v") for each in range(3)])
    assert examine_small(data, 2) is None
    keyed = examine_small(data, 3)
    assert keyed is not None
    assert len(keyed.messages) == 3
