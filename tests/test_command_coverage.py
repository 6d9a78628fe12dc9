"""Every command of the protocol has a handler in the broker, or a line here that says why not."""

from __future__ import annotations

from pulsar_py.proto.PulsarApi_pb2 import BaseCommand
from pulsar_py.server.connection.command_table import HANDLERS
from pulsar_py.wire.connection_state import FROM_BROKER, FROM_CLIENT

NOT_HANDLED = {
    "CONNECTED": "sent by brokers only",
    "SEND": "ServerCnx.data_received hands it to its producer: the hot path has no table",
    "WATCH_SCALABLE_TOPICS_CLOSE": "no watch can be open: its flag is never set",
    "SCALABLE_TOPIC_CLOSE": "no session can be open: its flag is never set",
    "WATCH_TC_ASSIGNMENTS_CLOSE": "no watch can be open: its flag is never set",
}
SENT_BY_BROKERS = FROM_BROKER - FROM_CLIENT


def test_each_command_has_a_handler_or_a_reason() -> None:
    for name, number in BaseCommand.Type.items():
        if number in SENT_BY_BROKERS:
            assert number not in HANDLERS, name
            continue
        has_handler, has_reason = number in HANDLERS, name in NOT_HANDLED
        assert has_handler != has_reason, name


def test_reasons_are_for_commands_that_exist() -> None:
    assert set(NOT_HANDLED) <= set(BaseCommand.Type.keys())
