"""`part_that_fits`: the part of a cursor's state for its metadata record (pure).

It is used if no cursor ledger can be created. The record may have so many ranges, so many batches,
and so many bytes of those. Acknowledgements that the record has already stay in it, since they were
reported as written. The lowest of the others are added as long as there is room.
"""

from __future__ import annotations

from pulsar_py.managed_ledger.cursors.format import CursorContent, CursorSnapshot
from pulsar_py.managed_ledger.cursors.paging import MAX_BATCHES_BYTES


def part_that_fits(
    content: CursorContent,
    recorded: CursorSnapshot | None,
    limit: int,
    *,
    max_batches_bytes: int = MAX_BATCHES_BYTES,
) -> tuple[CursorSnapshot, int]:
    """A part of `content` with at most `limit` ranges and `limit` batches; what is left out.

    The second value is the number of ranges and batches that are left out.

    `max_batches_bytes` bounds the bit sets of all batches that are added.

    The part always has what `content` and `recorded` have in common. If batches in `recorded` are
    whole entries by now, there may be more ranges than the limit, but then fewer batches.
    """
    part = CursorSnapshot(content.mark_delete_position, properties=dict(content.properties))
    if recorded is not None:
        _keep(part, content, recorded)
    _fill(part, content, limit, max_batches_bytes)
    ranges_left_out = content.individual_deleted_messages.without(part.individual_deleted_messages)
    batches_left_out = len(content.batch_deleted_indexes) - len(part.batch_deleted_indexes)
    return part, ranges_left_out.ranges_count() + batches_left_out


def _keep(part: CursorSnapshot, content: CursorContent, recorded: CursorSnapshot) -> None:
    """Add the ranges and batches that the record has and `content` still has, as they are now."""
    whole, batches = content.individual_deleted_messages, content.batch_deleted_indexes
    part.individual_deleted_messages = whole.common_with(recorded.individual_deleted_messages)
    for position, _ in recorded.batch_deleted_indexes.items():  # noqa: PERF102 - not a dict
        if position in whole:
            part.individual_deleted_messages.add(position)
        elif (bits := batches.get(position)) is not None:
            part.batch_deleted_indexes.put(position, bits)
    for ledger_id, _, last in list(part.individual_deleted_messages.ranges()):
        end = whole.run_end(ledger_id, last)
        part.individual_deleted_messages.add_range(ledger_id, last, end)


def _fill(part: CursorSnapshot, content: CursorContent, limit: int, max_batches_bytes: int) -> None:
    taken, batches = part.individual_deleted_messages, part.batch_deleted_indexes
    ranges_count = taken.ranges_count()
    room = min(limit, 2 * limit - len(batches)) - ranges_count
    for ledger_id, first, last in content.individual_deleted_messages.ranges():
        if room <= 0:
            break
        if last - first + 1 > taken.count_between(ledger_id, first, last):
            room -= 1
            taken.add_range(ledger_id, first, last)
    room = min(limit, 2 * limit - taken.ranges_count()) - len(batches)
    room_bytes = max_batches_bytes - batches.size_bytes()
    for position, bits in content.batch_deleted_indexes.items():
        if room <= 0 or room_bytes <= 0:
            break
        if position not in batches:
            room -= 1
            room_bytes -= (bits.bit_length() + 7) >> 3
            if room_bytes >= 0:
                batches.put(position, bits)
