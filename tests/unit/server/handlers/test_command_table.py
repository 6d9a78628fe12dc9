from __future__ import annotations

from pulsar_py.proto.PulsarApi_pb2 import BaseCommand
from pulsar_py.server.handlers.command_table import HANDLERS
from pulsar_py.wire.connection_state import LEGAL_COMMANDS, Side, State


def test_handlers_are_named_after_what_they_serve() -> None:
    for number, handler in HANDLERS.items():
        assert handler.__name__.startswith("handle_"), BaseCommand.Type.Name(number)
        assert handler.__doc__, handler.__name__


def test_nothing_is_served_that_may_not_come() -> None:
    legal = frozenset().union(*(LEGAL_COMMANDS[Side.BROKER][state] for state in State))
    illegal = set(HANDLERS) - legal - {BaseCommand.AUTH_RESPONSE}
    assert not illegal, [BaseCommand.Type.Name(each) for each in illegal]
