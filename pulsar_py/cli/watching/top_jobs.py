"""Asks a broker now and then for `pulsar-py top`, and shows the busiest rows (edge).

On a terminal the table is drawn anew in place, as many rows as it has room for; a broker that is
away is waited for, and the reason stands below. Otherwise the table is printed once.
"""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Final

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from pulsar_py.admin_client import AdminSettings, AsyncAdminClient, brokers
from pulsar_py.cli.answering.json_lines import in_camel_case
from pulsar_py.cli.watching.top_rows import Order, Row, TopSnapshot, TopView, rows_between
from pulsar_py.common.errors import PulsarError
from pulsar_py.common.loops.clock import Clock, SystemClock

__all__ = ["TopRequest", "run", "table_of"]

_WIDTH: Final = 160
"""Columns where there is no terminal."""
_HEADING_LINES: Final = 2
"""Lines of the table on a terminal that are no rows: its heading, and an empty one at the end."""
_THREE_DIGITS: Final = 99.95
_FOUR_DIGITS: Final = 999.5
"""What would be rounded to more digits begins here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopRequest:
    """One call of the command."""

    view: TopView
    order: Order
    rows_count: int
    interval_seconds: float
    namespace: str | None = None
    is_json: bool = False
    is_once: bool = False


async def run(request: TopRequest, admin: AdminSettings, write: Callable[[str], None]) -> None:
    """Show rows until it is interrupted, or once.

    Raises:
        ServiceError, ClientError: The broker refused, or can't be reached.
    """
    async with AsyncAdminClient(admin) as calls:
        pictures = each_interval(request, calls, SystemClock())
        if request.is_json:
            async for rows in pictures:
                picture = {
                    "view": request.view.value,
                    "rows": [in_camel_case(asdict(row)) for row in rows],
                }
                write(json.dumps(picture, separators=(",", ":")))
                if request.is_once:
                    return
        elif request.is_once or not sys.stdout.isatty():
            console = Console(width=_WIDTH, color_system=None)
            with console.capture() as capture:
                console.print(table_of(request.view, await anext(pictures)))
            write(capture.get().rstrip("\n"))
        else:
            with Live(screen=True, auto_refresh=False) as live:
                await _draw(request, calls, SystemClock(), live)


async def _draw(request: TopRequest, calls: AsyncAdminClient, clock: Clock, live: Live) -> None:
    """Draw the table until cancelled; only a broker that is away at first ends it."""
    rows: Sequence[Row] = ()
    before = await _snapshot(request, calls, clock)
    while True:
        await clock.sleep(request.interval_seconds)
        trouble = ""
        try:
            after = await _snapshot(request, calls, clock)
        except PulsarError as error:
            trouble = _plain(str(error))
        else:
            rows = rows_between(before, after, request.view, request.order)
            before = after
        room = max(live.console.height - _HEADING_LINES - bool(trouble), 1)
        table = table_of(request.view, rows[: min(request.rows_count, room)], live.console.width)
        live.update(Group(table, Text(trouble, overflow="ellipsis", no_wrap=True)), refresh=True)


async def each_interval(
    request: TopRequest, calls: AsyncAdminClient, clock: Clock
) -> AsyncIterator[Sequence[Row]]:
    """The largest rows of each interval."""
    before = await _snapshot(request, calls, clock)
    while True:
        await clock.sleep(request.interval_seconds)
        after = await _snapshot(request, calls, clock)
        yield rows_between(before, after, request.view, request.order)[: request.rows_count]
        before = after


async def _snapshot(request: TopRequest, calls: AsyncAdminClient, clock: Clock) -> TopSnapshot:
    answer = await calls.call(brokers.topics_of_broker())
    return TopSnapshot.of(clock.monotonic_seconds(), answer, request.namespace)


def table_of(view: TopView, rows: Sequence[Row], width: int | None = None) -> Table:
    """The table for people; names are shown as they are, whatever they contain.

    In `width` columns a row is one line: numbers that matter less are left out, and names lose
    their beginning. Without a width all is there, and names that are too long are folded.
    """
    last = {TopView.SUBSCRIPTIONS: "stopped by", TopView.CONNECTIONS: "client"}.get(view)
    numbers = _numbers_of(view)
    room = None
    if width is not None:
        numbers, room = _fitting(numbers, rows, width - (_STATE_COLUMNS if last else 0))
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(view.value.removesuffix("s"), overflow="fold")
    for heading, _ in numbers:
        table.add_column(heading, justify="right", no_wrap=True)
    if last is not None and width is None:
        table.add_column(last, overflow="fold")
    elif last is not None:
        table.add_column(last, no_wrap=True, max_width=_STATE_COLUMNS - _GAP)
    for row in rows:
        name = _plain(row.name)
        if room is not None and len(name) > room:
            name = "…" + name[len(name) - room + 1 :]
        cells = [Text(name), *(Text(text(row)) for _, text in numbers)]
        table.add_row(*cells, *([] if last is None else [Text(_plain(row.state))]))
    return table


def _numbers_of(view: TopView) -> list[Number]:
    """The columns of numbers that a view has."""
    if view is TopView.SUBSCRIPTIONS:
        return [each for each in _NUMBERS if "in" not in each[0].split() and each[0] != "producers"]
    if view is TopView.CONNECTIONS:
        return [each for each in _NUMBERS if each[0] != "backlog"]
    return list(_NUMBERS)


def _fitting(
    numbers: Sequence[Number], rows: Sequence[Row], width: int
) -> tuple[list[Number], int]:
    """The columns for which there is room, and the room that they leave for the name."""
    sizes = {
        heading: max([len(heading), *(len(text(row)) for row in rows)]) + _GAP
        for heading, text in numbers
    }
    longest = max([len(_plain(row.name)) for row in rows], default=0)
    kept = [each[0] for each in numbers]
    for heading in _DISPENSABLE:
        has_room = width - sum(sizes[each] for each in kept) >= min(longest, _NAME_COLUMNS)
        if has_room or len(kept) == 1:
            break
        if heading in kept:
            kept.remove(heading)
    room = max(width - sum(sizes[each] for each in kept), 1)
    return [each for each in numbers if each[0] in kept], room


def _plain(text: str) -> str:
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


def _amount(value: float) -> str:
    """At most three digits and a unit of thousands."""
    for unit in ("", "k", "M", "G"):
        if value < _FOUR_DIGITS:
            text = f"{value:.3g}" if value < _THREE_DIGITS else f"{value:.0f}"
            return text + unit
        value /= 1000
    return f"{value:.0f}T"


Number = tuple[str, Callable[[Row], str]]
"""A column: its heading, and the text of a row."""
_NUMBERS: Final[Sequence[Number]] = (
    ("msg/s in", lambda row: _amount(row.messages_in)),
    ("B/s in", lambda row: _amount(row.bytes_in)),
    ("msg/s out", lambda row: _amount(row.messages_out)),
    ("B/s out", lambda row: _amount(row.bytes_out)),
    ("backlog", lambda row: _amount(row.backlog)),
    ("unacked", lambda row: _amount(row.unacked)),
    ("producers", lambda row: str(row.producers)),
    ("consumers", lambda row: str(row.consumers)),
)
_DISPENSABLE: Final = (
    "producers", "consumers", "unacked", "B/s in", "B/s out", "backlog", "msg/s out",
)  # fmt: skip
"""What a narrow terminal goes without, in that order."""
_NAME_COLUMNS: Final = 40
"""Names keep so much of their end, as long as there are numbers to leave out."""
_STATE_COLUMNS: Final = 16
_GAP: Final = 2
