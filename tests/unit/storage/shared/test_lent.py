from __future__ import annotations

import random

import pytest

from pulsar_py.common.disks.memory_disk import MemoryDisk
from pulsar_py.common.packed_entries import LENT_BYTES
from pulsar_py.storage.shared.lent import Lent, Pins, taken
from tests.unit.storage.support import start, write

LARGE = 2 * LENT_BYTES


def lent(*pieces: bytes | memoryview) -> Lent:
    return Lent(pieces, sum(map(len, pieces)))


def test_small_ones_are_copied_and_large_ones_kept_where_they_are() -> None:
    memory = memoryview(bytearray(LARGE))

    assert taken(memory[:10]) == bytes(10)
    assert taken((b"a", memory[:2])) == b"a\0\0"
    assert taken(()) == b""
    large = taken((b"a", memory))
    assert isinstance(large, Lent)
    assert (large.pieces, len(large)) == ((b"a", memory), LARGE + 1)


def test_a_buffer_counts_once_with_all_its_memory() -> None:
    pins, memory = Pins(), memoryview(bytearray(1000))

    first, second = lent(memory[:100]), lent(memory[100:250], b"own")
    assert pins.add(first) == 900
    assert pins.add(second) == -150
    assert pins.rest_bytes == 750
    assert 100 + 153 + pins.rest_bytes == 1000 + 3

    assert pins.remove(first) == -100
    assert pins.remove(second) == 850
    assert pins.rest_bytes == 0


def test_entries_that_lie_over_each_other_never_make_the_rest_negative() -> None:
    pins, memory = Pins(), memoryview(bytearray(1000))
    entries = [lent(memory[:800]) for _ in range(3)]

    assert [pins.add(each) for each in entries] == [200, -200, 0]
    assert [pins.remove(each) for each in entries] == [0, -200, 200]


def test_any_order_of_adding_and_removing_gives_everything_back() -> None:
    for seed in range(50):
        chance, pins = random.Random(seed), Pins()
        buffers = [memoryview(bytearray(chance.randint(1, 1000))) for _ in range(3)]
        there: list[Lent] = []
        rest_bytes = 0
        for _ in range(100):
            if there and chance.random() < 0.5:
                rest_bytes -= pins.remove(there.pop(chance.randrange(len(there))))
            else:
                buffer = chance.choice(buffers)
                start = chance.randrange(len(buffer))
                there.append(lent(buffer[start : chance.randint(start, len(buffer))], b"x"))
                rest_bytes += pins.add(there[-1])
            assert rest_bytes == pins.rest_bytes >= 0
        for each in there:
            rest_bytes -= pins.remove(each)
        assert rest_bytes == pins.rest_bytes == 0


@pytest.mark.parametrize(
    ("start", "stop", "is_kept"), [(0, 1000, True), (50, 1000, True), (100, 1000, False)]
)
def test_a_view_is_kept_where_it_is_nearly_all_of_memory_that_nobody_writes_to(
    start: int, stop: int, *, is_kept: bool
) -> None:
    view = memoryview(bytearray(1000))[start:stop]

    owned, rest_bytes = lent(view.toreadonly()).owned()
    assert isinstance(owned, memoryview) is is_kept
    assert rest_bytes == (start if is_kept else 0)
    assert isinstance(lent(view).owned()[0], bytes)
    assert isinstance(lent(view.toreadonly(), b"").owned()[0], bytes)


async def test_the_gate_gets_back_what_lent_entries_pinned() -> None:
    bookie = await start(MemoryDisk(), append_limit_bytes=10 * LARGE, write_cache_bytes=5 * LARGE)
    room_bytes = bookie.gate.room_bytes
    writer, listener = await write(bookie, 0)
    memory = memoryview(bytearray(4 * LARGE))

    writer.append(memory[:LARGE])
    assert bookie.gate.room_bytes == room_bytes - 4 * LARGE - 64
    writer.append(memory[LARGE : 2 * LARGE])
    assert bookie.gate.room_bytes == room_bytes - 4 * LARGE - 2 * 64
    await listener.until(1)
    assert bookie.gate.room_bytes == room_bytes - 2 * LARGE - 2 * 64, "copies"
    writer.append(memory[: 2 * LARGE])
    await writer.close()  # dropped
    assert bookie.gate.room_bytes == room_bytes - 2 * LARGE - 2 * 64
    await bookie.flush()

    assert bookie.gate.room_bytes == room_bytes
    assert bookie.gate.pins.rest_bytes == 0
    await bookie.close()


async def test_a_kept_view_costs_its_buffer_until_it_is_flushed_or_deleted() -> None:
    bookie = await start(MemoryDisk(), append_limit_bytes=10 * LARGE, write_cache_bytes=5 * LARGE)
    room_bytes = bookie.gate.room_bytes
    memory = memoryview(bytearray(LARGE + 100)).toreadonly()
    for ends in (bookie.flush, None):
        writer, listener = await write(bookie, 0)
        writer.append(memory[100:])
        await listener.until(0)
        assert bookie.gate.room_bytes == room_bytes - LARGE - 100 - 64
        (read,) = await writer.read(0, 0, 1)
        assert isinstance(read, memoryview)
        await (bookie.delete(writer.ledger_id) if ends is None else ends())
        assert bookie.gate.room_bytes == room_bytes
    await bookie.close()


async def test_memory_is_lent_until_the_write_has_ended_also_where_the_writer_is_fenced() -> None:
    bookie = await start(MemoryDisk(), append_limit_bytes=10 * LARGE, write_cache_bytes=5 * LARGE)
    writer, listener = await write(bookie, 0)
    writer.append(memoryview(bytearray(LARGE)))
    bookie.journal._take()  # the group is on its way
    told: list[bool] = []
    listener.on_failed = lambda *_: told.append(bookie.journal.group is None)  # type: ignore[method-assign,assignment]

    reader = await bookie.recover(writer.ledger_id)

    assert told == [True]
    assert reader.last_add_confirmed == 0
    await bookie.close()
