"""Pictures of acknowledgement holes: exact counts in few cells, whatever a cursor holds."""

from __future__ import annotations

import json
import random
import time

from pyroaring import BitMap

from pulsar_py.common.position import Position
from pulsar_py.console.hole_pictures import MAX_CELLS, cells_between
from pulsar_py.managed_ledger.cursors.state import CursorState
from tests.playbooks.ledger_player import ledgers_from
from tests.unit.console.conftest import TOPIC, ConsoleCalls


def cursor_on(*words: str, mark_delete: str = "5:-1") -> CursorState:
    return CursorState(ledgers_from(words), Position.parse(mark_delete))


def naive(state: CursorState, first: Position, last: Position) -> list[bool]:
    """Of each entry, whether it is acknowledged."""
    found = []
    position = state.ledgers.next_valid_position(Position(first.ledger_id, first.entry_id - 1))
    while position <= last and state.ledgers.contains(position):
        found.append(state.is_acknowledged(position))
        position = state.ledgers.next_valid_position(position)
    return found


def test_cells_count_what_each_entry_says() -> None:
    chance = random.Random(7)
    for _ in range(60):
        state = cursor_on(
            f"5={chance.randint(1, 40)}",
            f"7={chance.randint(1, 40)}",
            f"9={chance.randint(1, 40)}+",
        )
        everything = [
            Position(ledger, entry)
            for ledger, record in state.ledgers.ledgers.items()
            for entry in range(record.entries_count)
        ]
        state.acknowledge(chance.sample(everything, len(everything) // 2), None, 0.0)
        first, last = sorted(chance.sample(everything, 2))
        entries = naive(state, first, last)
        cells = list(cells_between(state, first, last, chance.randint(1, 30)))
        assert sum(each.entries_count for each in cells) == len(entries)
        place = 0
        for cell in cells:
            part = entries[place : place + cell.entries_count]
            assert cell.acknowledged_count == sum(part), cell
            place += cell.entries_count


def test_there_are_no_more_cells_than_entries() -> None:
    state = cursor_on("5=3+")
    cells = list(cells_between(state, Position(5, 0), Position(5, 2), 600))
    assert [(str(each.start), each.entries_count) for each in cells] == [
        ("5:0", 1),
        ("5:1", 1),
        ("5:2", 1),
    ]
    assert list(cells_between(state, Position(5, 3), Position(5, 2), 600)) == []


def test_ten_million_holes_are_a_picture_of_bounded_size_in_no_time() -> None:
    state = cursor_on("5=20000000+")
    state.individual_deleted_messages._bitmaps[5] = BitMap(range(1, 20_000_000, 2))
    state.individual_deleted_messages._ledger_ids = [5]
    state.individual_deleted_messages._count = 10_000_000
    began = time.process_time()
    cells = list(cells_between(state, Position(5, 0), Position(5, 19_999_999), MAX_CELLS))
    took = time.process_time() - began
    assert len(cells) == MAX_CELLS
    assert sum(each.acknowledged_count for each in cells) == 10_000_000
    assert took < 0.5, took


async def test_a_picture_can_be_gone_into(console: ConsoleCalls) -> None:
    producer = await console.client.create_producer("t")
    consumer = await console.client.subscribe("t", "s")
    for number in range(20):
        await producer.send(b"%d" % number)
    received = [await consumer.receive() for _ in range(20)]
    for each in received[1::2]:
        await consumer.acknowledge(each)
    subscription = console.topic("t").subscriptions["s"]
    while subscription.cursor.backlog_count() > 10:
        await console.client.get_topic_partitions("t")
    path = f"{TOPIC}/t/subscription/s/holes"
    found = await console.get(f"{path}?cells=5")
    assert found["cells"] == [[4, 2]] * 5
    assert (found["entries"], found["acknowledged"], found["backlog"]) == (20, 10, 10)
    assert found["holes"] == 10
    inner = await console.get(f"{path}?first={found['starts'][1]}&last={found['starts'][2]}")
    assert inner["cells"] == [[1, 0], [1, 1], [1, 0], [1, 1], [1, 0]]


async def test_bytes_of_a_picture_are_bounded(console: ConsoleCalls) -> None:
    producer = await console.client.create_producer("t", batching_enabled=False)
    await console.client.subscribe("t", "s")
    for _ in range(100):
        producer.send_nowait(b"")
    await producer.flush()
    response = await console.call("GET", f"{TOPIC}/t/subscription/s/holes?cells=2000")
    assert len(json.loads(response.body)["cells"]) == 100
    for wrong in ("cells=0", "cells=2001", "cells=x", "first=1", "first=a:b", "last=-1:0"):
        assert (await console.reason("GET", f"{TOPIC}/t/subscription/s/holes?{wrong}"))[0] == 400


async def test_partitions_are_asked_one_by_one(console: ConsoleCalls) -> None:
    await console.call("PUT", "/admin/v2/persistent/public/default/p/partitions", 2)
    await console.client.subscribe("p", "s")
    status, reason = await console.reason("GET", f"{TOPIC}/p/subscription/s/holes")
    assert status == 405
    assert "partition" in reason
    found = await console.get(f"{TOPIC}/p-partition-1/subscription/s/holes")
    assert found["cells"] == []
