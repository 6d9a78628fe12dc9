"""The busiest rows of a real broker in this process."""

from __future__ import annotations

import json

import pytest
from rich.console import Console

from pulsar_py.admin_client import AdminSettings
from pulsar_py.cli.watching.top_jobs import TopRequest, run, table_of
from pulsar_py.cli.watching.top_rows import Order, Row, TopView
from pulsar_py.client import Client
from pulsar_py.standalone import Broker


async def test_a_picture_is_printed_once() -> None:
    async with Broker() as broker, Client(broker.service_url) as client:
        await client.create_producer("orders")
        await client.subscribe("orders", "billing")
        admin = AdminSettings(url=broker.web_service_url)
        lines: list[str] = []
        for view, is_json in ((TopView.SUBSCRIPTIONS, False), (TopView.TOPICS, True)):
            request = TopRequest(
                view=view,
                order=Order.BACKLOG,
                rows_count=5,
                interval_seconds=0.01,
                is_json=is_json,
                is_once=True,
            )
            await run(request, admin, lines.append)
    table, rows = lines
    assert "stopped by" in table
    assert "persistent://public/default/orders billing" in table
    picture = json.loads(rows)
    assert picture["view"] == "topics"
    (row,) = picture["rows"]
    assert (row["producers"], row["consumers"]) == (1, 1)


def test_names_are_shown_as_they_are_and_numbers_are_short() -> None:
    row = Row(name="[red]t\x1b[2J", messages_in=1234.5, bytes_in=5e12, backlog=999, bytes_out=12.34)
    console = Console(width=160, color_system=None)
    with console.capture() as capture:
        console.print(table_of(TopView.TOPICS, [row]))
    heading, line = capture.get().splitlines()
    assert heading.split()[:3] == ["topic", "msg/s", "in"]
    assert line.split() == ["[red]t\\x1b[2J", "1.23k", "5T", "0", "12.3", "999", "0", "0", "0"]


@pytest.mark.parametrize("view", list(TopView))
@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
def test_a_row_is_one_line_within_the_width(view: TopView, width: int) -> None:
    rows = [
        Row(
            name=f"persistent://tenant/namespace/a-topic-of-some-length-{number:03}",
            messages_in=1234.5,
            backlog=number,
            state="NO_CONSUMERS PAUSED",
        )
        for number in range(5)
    ]
    console = Console(width=width, color_system=None)
    with console.capture() as capture:
        console.print(table_of(view, rows, width))
    heading, *lines = capture.get().splitlines()
    assert len(lines) == len(rows)
    assert max(map(len, (heading, *lines))) <= width
    assert [line.split()[0][-3:] for line in lines] == [f"{n:03}" for n in range(5)]
    if view is TopView.TOPICS:
        assert ("producers" in heading) == (width >= 120)
