"""Resource of a subscription's acknowledged entries, summed up in a bounded number of cells.

    GET …/{topic}/subscription/{subscription}/holes

    query       first, last    `ledger:entry`, the entries to show; all that are not deleted yet
                               from the first one that is not acknowledged on
                cells          1 to 2000; 600
    answer      {"first", "last", "entries", "acknowledged", "cells": [[entries, acknowledged]…],
                 "starts": the first entry of each cell, "markDelete", "read", "partly": batches of
                 which a part is acknowledged}

Entries are spread over the cells evenly, so that ten million of them need as many bytes as a
hundred: a cell that stands for a thousand entries says how many of them are acknowledged. To see
single entries, ask again for the range of one cell. Acknowledgements that are not in
memory are loaded first. Counting in roaring bitmaps takes a step a cell and a ledger.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from msgspec import Struct

from pulsar_py.admin.http_messages import Request, Response, json_response
from pulsar_py.admin.resources.requests import topic_of
from pulsar_py.admin.resources.subscriptions import subscription_not_found
from pulsar_py.admin.resources.topic_access import refuse_partitioned, require_topic
from pulsar_py.admin.router import Route, get
from pulsar_py.common.position import Position
from pulsar_py.console.answers import HolesAnswer
from pulsar_py.console.parameters import Amount, EntryParameter
from pulsar_py.console.topic_pages import SUBSCRIPTION
from pulsar_py.managed_ledger.cursors.state import CursorState
from pulsar_py.server.broker import BrokerService
from pulsar_py.server.security.actions import Action
from pulsar_py.server.subscriptions.persistent_subscription import PersistentSubscription

__all__ = ["Cell", "HolePictures", "cells_between", "persistent_subscription"]

MAX_CELLS: Final = 2000

_FIRST: Final = EntryParameter("first")
_LAST: Final = EntryParameter("last")
_CELLS: Final = Amount("cells", minimum=1, maximum=MAX_CELLS, default=600)


class Cell(Struct, frozen=True):
    """Neighbouring entries: the first of them, how many, and how many are acknowledged."""

    start: Position
    entries_count: int
    acknowledged_count: int


def cells_between(
    state: CursorState, first: Position, last: Position, cells_count: int
) -> Iterator[Cell]:
    """The entries from `first` to `last` in at most so many cells; none may be cold."""
    ledgers = state.ledgers
    before = ledgers.index_through(Position(first.ledger_id, first.entry_id - 1))
    entries = ledgers.index_through(last) - before
    if entries <= 0:
        return
    cells_count = min(cells_count, entries)
    for number in range(cells_count):
        begin = before + entries * number // cells_count
        end = before + entries * (number + 1) // cells_count
        start = ledgers.position_at(begin + 1)
        final = ledgers.position_at(end)
        yield Cell(start, end - begin, _acknowledged_between(state, start, final))


def _acknowledged_between(state: CursorState, first: Position, last: Position) -> int:
    deleted, ledgers, mark_delete = (
        state.individual_deleted_messages,
        state.ledgers.ledgers,
        state.mark_delete_position,
    )
    total = 0
    if mark_delete >= first:  # entries up to it are in no bitmap
        through = min(mark_delete, last)
        total += state.ledgers.index_through(through) - state.ledgers.index_through(
            Position(first.ledger_id, first.entry_id - 1)
        )
    if first.ledger_id == last.ledger_id:
        return total + deleted.count_between(first.ledger_id, first.entry_id, last.entry_id)
    for ledger_id in deleted.ledger_ids():
        if first.ledger_id <= ledger_id <= last.ledger_id and ledger_id in ledgers:
            begin = first.entry_id if ledger_id == first.ledger_id else 0
            end = last.entry_id if ledger_id == last.ledger_id else (1 << 32) - 2
            total += deleted.count_between(ledger_id, begin, end)
    return total


class HolePictures:
    """Serves the acknowledged entries of subscriptions, summed up in cells."""

    def __init__(self, broker: BrokerService) -> None:
        self._broker = broker

    def routes(self) -> Iterable[Route]:
        """The routes of this resource."""
        return (
            get(
                SUBSCRIPTION + "/holes",
                self.picture,
                Action.GET_STATS,
                *(_FIRST, _LAST, _CELLS),
                answer=HolesAnswer,
            ),
        )

    async def picture(self, request: Request) -> Response:
        """Return the cells of a subscription on one topic or partition."""
        subscription = await persistent_subscription(self._broker, request, "A picture of")
        cells_count = _CELLS.required(request)
        first, last = _FIRST.of(request), _LAST.of(request)
        await subscription.cursor.load_acknowledgements()
        state = subscription.cursor.state
        ledgers = state.ledgers
        if first is None:
            first = ledgers.next_valid_position(state.mark_delete_position)
        end = ledgers.last_confirmed_entry
        last = end if last is None else min(last, end)
        cells = list(cells_between(state, first, last, cells_count))
        return json_response(
            {
                "first": str(first),
                "last": str(last),
                "entries": sum(each.entries_count for each in cells),
                "acknowledged": sum(each.acknowledged_count for each in cells),
                "cells": [[each.entries_count, each.acknowledged_count] for each in cells],
                "starts": [str(each.start) for each in cells],
                "markDelete": str(state.mark_delete_position),
                "read": str(state.read_position),
                "end": str(end),
                "holes": state.ranges_count(),
                "partly": state.batches_count(),
                "backlog": state.backlog_count(),
            }
        )


async def persistent_subscription(
    broker: BrokerService, request: Request, what: str
) -> PersistentSubscription:
    """The subscription in the path, on one topic or partition.

    Raises:
        HttpError: 404, there is none; 405, the topic is partitioned.
        RedirectError: Another broker serves the topic.
    """
    name, wanted = topic_of(request), request.path["subscription"]
    hint = ", please ask for those of each partition"
    await refuse_partitioned(broker, name, what, hint=hint)
    found: Any = (await require_topic(broker, name)).subscriptions.get(wanted)  # Any: either kind
    if not isinstance(found, PersistentSubscription):
        raise subscription_not_found(name, wanted, is_partitioned=False)
    return found
