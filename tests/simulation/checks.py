"""Compares what is there with what was promised: entries, cursors, deliveries."""

from __future__ import annotations

from pulsar_py.common.errors import StorageError
from pulsar_py.common.position import EARLIEST, Position
from pulsar_py.managed_ledger.cursors.managed_cursor import ManagedCursor
from pulsar_py.managed_ledger.managed_ledger import InitialPosition
from tests.simulation.model import (
    AGAIN,
    BACK,
    BATCH,
    DELETED,
    INVENTED,
    RECOVERED,
    SERVED,
    WHOLE,
    Acks,
    CursorPromise,
    Model,
    TopicPromise,
)

READ_ENTRIES = 50


async def check_entries(name: str, ledger, model: Model) -> None:
    """After opening: all that was confirmed is there, and nothing that nobody sent."""
    promise = model.topics[name]
    first = ledger.first_position
    for position in [each for each in promise.confirmed if each < first]:
        check_trimmed(name, position, promise, model)
        del promise.confirmed[position]
    found = await _read_all(ledger)
    for position, data in promise.confirmed.items():
        model.require(
            RECOVERED, holds=found.get(position) == data, detail=(name, position, data[:20])
        )
    numbers = []
    for position, data in found.items():
        if position in promise.confirmed:
            continue
        is_sent = data in promise.sent or data in promise.failed
        model.require(WHOLE, holds=is_sent, detail=(name, position, data[:20]))
        numbers.append(int(data.split()[1]))
        promise.sent.pop(data, None)
        promise.failed.pop(data, None)
        promise.confirmed[position] = data
        model.highest[name] = max(model.highest.get(name, EARLIEST), position)
    model.require(WHOLE, holds=numbers == sorted(numbers), detail=(name, "order", numbers))
    # What was not found now will never be.
    promise.sent.clear()
    promise.failed.clear()


def check_trimmed(name: str, position: Position, promise: TopicPromise, model: Model) -> None:
    for cursor_name, cursor in promise.cursors.items():
        if not cursor.is_maybe_missing:
            model.require(
                INVENTED,
                holds=all_indexes(position) <= cursor.memory | cursor.doubt,
                detail=(name, cursor_name, position, "trimmed"),
            )


async def _read_all(ledger) -> dict[Position, bytes]:
    cursor = ledger.new_non_durable_cursor("reader", InitialPosition.EARLIEST)
    try:
        found = {}
        while entries := await cursor.read(READ_ENTRIES, 1 << 20):
            found |= {entry.position: bytes(entry.data) for entry in entries}
        return found
    finally:
        await cursor.close()


def check_cursors(name: str, ledger, model: Model) -> None:
    """After opening: every cursor's state lies between what is durable and what was asked for."""
    promise = model.topics[name]
    for cursor_name, known in list(promise.cursors.items()):
        cursor = ledger.cursors.get(cursor_name)
        if cursor is None:
            model.require(DELETED, holds=known.is_maybe_missing, detail=(name, cursor_name, "gone"))
            del promise.cursors[cursor_name]
            continue
        model.held[DELETED] += 1
        known.is_maybe_missing = False
        cursor.state.check()
        there = {each for each in promise.confirmed if ledger.contains(each)}
        if not known.is_placed:
            known.is_placed = True
            known.doubt |= {ack for each in there for ack in all_indexes(each)}
        _check_cursor(name, ledger, cursor, known, there=there, model=model)
    for cursor_name in set(ledger.cursors) - set(promise.cursors):
        model.require(DELETED, holds=False, detail=(name, cursor_name, "is back"))


def _check_cursor(
    name: str,
    ledger,
    cursor: ManagedCursor,
    known: CursorPromise,
    *,
    there: set[Position],
    model: Model,
) -> None:
    name = f"{name} {cursor.name}"
    if not known.is_in_doubt:
        check_not_back(name, ledger, cursor.mark_delete_position, known.floor, model)
    found = acknowledged(cursor, there)
    lost = {ack for ack in known.durable - found if ack[0] in there}
    model.require(AGAIN, holds=not lost, detail=(name, sorted(lost)[:3]))
    invented = found - known.memory - known.doubt
    model.require(INVENTED, holds=not invented, detail=(name, sorted(invented)[:3]))
    known.memory = set(found)
    known.latest = cursor.mark_delete_position
    known.written(found, cursor.mark_delete_position)


def check_not_back(
    name: str, ledger, mark_delete: Position, before: Position, model: Model
) -> None:
    is_back = mark_delete < before and ledger.count_entries_between(mark_delete, before) > 0
    model.require(BACK, holds=not is_back, detail=(name, mark_delete, before))


def acknowledged(cursor: ManagedCursor, there: set[Position]) -> Acks:
    """What of these entries a cursor counts as acknowledged."""
    found = set()
    for position in there:
        if cursor.is_acknowledged(position):
            found |= all_indexes(position)
            continue
        words = cursor.batch_ack_set(position)
        if words is not None:
            found |= {(position, each) for each in range(BATCH) if not words[0] >> each & 1}
    return found


def all_indexes(position: Position) -> Acks:
    return {(position, index) for index in range(BATCH)}


async def check_delivery(name: str, ledger, cursor: ManagedCursor, known, model: Model) -> None:
    """Everything that waits is delivered, whole, and nothing that is acknowledged."""
    promise = model.topics[name]
    expected = {
        position: data
        for position, data in promise.confirmed.items()
        if ledger.contains(position) and not all_indexes(position) <= known.memory
    }
    cursor.rewind()
    while entries := await cursor.read(READ_ENTRIES, 1 << 20):
        for entry in entries:
            position, data = entry.position, bytes(entry.data)
            model.require(
                AGAIN,
                holds=not all_indexes(position) <= known.memory,
                detail=(name, cursor.name, position, "delivered"),
            )
            right = promise.confirmed.get(position, data)
            model.require(RECOVERED, holds=data == right, detail=(name, position))
            expected.pop(position, None)
    model.require(INVENTED, holds=not expected, detail=(name, cursor.name, sorted(expected)[:3]))


async def check_damaged(name: str, ledger, model: Model) -> None:
    """After bits were flipped: each entry is right, or reading it fails."""
    for position, data in model.topics[name].confirmed.items():
        try:
            found = bytes((await ledger.read_entry(position)).data)
        except StorageError:
            model.held["corruption reported"] += 1
            continue
        model.require(SERVED, holds=found == data, detail=(name, position))
