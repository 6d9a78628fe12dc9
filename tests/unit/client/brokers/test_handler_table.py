"""Who on a connection gets which news."""

from __future__ import annotations

from typing import cast

from pulsar_py.client.brokers.client_cnx import ClientCnx
from pulsar_py.client.brokers.handler_table import HandlerTable
from pulsar_py.proto.PulsarApi_pb2 import BaseCommand, CommandTopicMigrated, ServerError
from pulsar_py.wire import commands
from pulsar_py.wire.framing import SIZES_SIZE

CNX = cast("ClientCnx", object())


class Handler:
    """Writes down all calls."""

    def __init__(self) -> None:
        self.calls: list[tuple[object, ...]] = []

    def __getattr__(self, name: str):
        return lambda *values, **named: self.calls.append((name, *values, *named.values()))


def parsed(frame: bytes) -> BaseCommand:
    return commands.read_command(frame[SIZES_SIZE:])


def table_of(handler: Handler) -> HandlerTable:
    table = HandlerTable()
    table.producers[1] = table.consumers[2] = table.watchers[3] = handler
    return table


def test_each_command_reaches_its_handler() -> None:
    handler = Handler()
    table = table_of(handler)
    touched: dict = {}
    frames = [
        commands.send_error(1, 7, ServerError.ChecksumError, "x"),
        commands.active_consumer_change(2, is_active=True),
        commands.reached_end_of_topic(2),
        commands.watch_topic_update(3, ["a"], ["b"], "cafe"),
        commands.topic_migrated(1, CommandTopicMigrated.Producer, broker_service_url="pulsar://n"),
        commands.topic_migrated(
            2, CommandTopicMigrated.Consumer, broker_service_url_tls="pulsar+ssl://n"
        ),
        commands.close_producer(1, assigned_url="pulsar://n"),
        commands.close_consumer(2),
    ]
    for frame in frames:
        table.on_news(CNX, parsed(frame), touched)

    assert handler.calls == [
        ("on_send_error", 7, ServerError.ChecksumError, "x"),
        ("on_active_consumer_change", True),
        ("on_reached_end_of_topic",),
        ("on_topic_list_update", ("a",), ("b",), "cafe"),
        ("on_topic_migrated", CNX, "pulsar://n", None),
        ("on_topic_migrated", CNX, None, "pulsar+ssl://n"),
        ("on_close_producer", CNX, "pulsar://n", None),
        ("on_close_consumer", CNX, None, None),
    ]
    assert list(touched) == [handler]


def test_who_was_closed_gets_no_more_and_news_of_strangers_is_dropped() -> None:
    handler = Handler()
    table = table_of(handler)
    for frame in (
        commands.close_producer(1),
        commands.close_producer(1),
        commands.send_error(1, 7, ServerError.ChecksumError, "x"),
        commands.close_consumer(9),
        commands.active_consumer_change(9, is_active=True),
        commands.reached_end_of_topic(9),
        commands.watch_topic_update(9, [], [], ""),
        commands.topic_migrated(9, CommandTopicMigrated.Consumer),
        commands.pong(),
    ):
        table.on_news(CNX, parsed(frame), {})

    assert handler.calls == [("on_close_producer", CNX, None, None)]


def test_the_end_of_the_connection_is_told_once() -> None:
    handler = Handler()
    table = table_of(handler)

    assert not table.is_empty
    table.on_connection_closed(CNX)
    table.on_connection_closed(CNX)

    assert handler.calls == [("on_connection_closed", CNX)] * 3
    assert table.is_empty
