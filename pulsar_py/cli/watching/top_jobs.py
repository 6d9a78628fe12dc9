"""Asks a broker now and then for `pulsar-py top`, and shows the busiest rows (edge).

On a terminal the table is drawn anew in place; otherwise it is printed once.
"""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Final

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from pulsar_py.admin_client import AdminSettings, AsyncAdminClient, brokers
from pulsar_py.cli.watching.top_rows import Order, Row, TopSnapshot, TopView, rows_between
from pulsar_py.common.loops.clock import Clock, SystemClock

__all__ = ["TopRequest", "run", "table_of"]

_WIDTH: Final = 160
"""Columns where there is no terminal."""
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
                write(json.dumps([asdict(row) for row in rows], separators=(",", ":")))
                if request.is_once:
                    return
        elif request.is_once or not sys.stdout.isatty():
            console = Console(width=_WIDTH, color_system=None)
            with console.capture() as capture:
                console.print(table_of(request.view, await anext(pictures)))
            write(capture.get().rstrip("\n"))
        else:
            with Live(screen=True, auto_refresh=False) as live:
                async for rows in pictures:
                    live.update(table_of(request.view, rows), refresh=True)


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


def table_of(view: TopView, rows: Sequence[Row]) -> Table:
    """The table for people; names are shown as they are, whatever they contain."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(view.value.removesuffix("s"), overflow="fold")
    numbers: list[tuple[str, Callable[[Row], str]]] = [
        ("msg/s in", lambda row: _amount(row.messages_in)),
        ("B/s in", lambda row: _amount(row.bytes_in)),
        ("msg/s out", lambda row: _amount(row.messages_out)),
        ("B/s out", lambda row: _amount(row.bytes_out)),
        ("backlog", lambda row: _amount(row.backlog)),
        ("unacked", lambda row: _amount(row.unacked)),
        ("producers", lambda row: str(row.producers)),
        ("consumers", lambda row: str(row.consumers)),
    ]
    if view is TopView.SUBSCRIPTIONS:
        numbers = [
            each for each in numbers if "in" not in each[0].split() and each[0] != "producers"
        ]
    if view is TopView.CONNECTIONS:
        numbers = [each for each in numbers if each[0] != "backlog"]
    for heading, _ in numbers:
        table.add_column(heading, justify="right")
    last = {TopView.SUBSCRIPTIONS: "stopped by", TopView.CONNECTIONS: "client"}.get(view)
    if last is not None:
        table.add_column(last, overflow="fold")
    for row in rows:
        cells = [Text(_plain(row.name)), *(Text(text(row)) for _, text in numbers)]
        table.add_row(*cells, *([] if last is None else [Text(_plain(row.state))]))
    return table


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
