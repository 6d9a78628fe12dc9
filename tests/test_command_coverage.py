"""Every command of the protocol has a handler in the broker, or a line here that says why not."""

from __future__ import annotations

import pytest

from pulsar_py.proto.PulsarApi_pb2 import BaseCommand
from pulsar_py.server.handlers.command_table import COMMANDS, HANDLERS, Command
from pulsar_py.server.security.actions import Action, Scope
from pulsar_py.wire.commands import FIELD_NAMES
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
        assert has_handler or has_reason, (
            f"nobody serves {name}: give it a handler in command_table.py, put it into FROM_BROKER "
            "of wire/connection_state.py if brokers send it, or say in NOT_HANDLED why not"
        )
        assert not (has_handler and has_reason), f"{name} has a handler: NOT_HANDLED is wrong"


def test_reasons_are_for_commands_that_exist() -> None:
    assert set(NOT_HANDLED) <= set(BaseCommand.Type.keys())


def test_each_command_takes_an_action_or_says_why_it_needs_no_right() -> None:
    for number, command in COMMANDS.items():
        name = BaseCommand.Type.Name(number)
        assert isinstance(command.needs, Action) or len(command.needs.split()) > 1, name
    assert COMMANDS[BaseCommand.PRODUCER].needs is Action.PRODUCE
    assert COMMANDS[BaseCommand.SUBSCRIBE].needs is Action.CONSUME


def test_what_names_a_topic_or_a_namespace_takes_an_action() -> None:
    """But for what acts on something this connection was let in to already."""
    for number, command in COMMANDS.items():
        name = BaseCommand.Type.Name(number)
        field = BaseCommand.DESCRIPTOR.fields_by_name[FIELD_NAMES[number]]
        names = {each.name for each in field.message_type.fields}
        if names & {"topic", "namespace"}:
            is_refused = command.needs == "refused to everybody"
            assert isinstance(command.needs, Action) or is_refused, name


def test_a_command_without_an_action_and_without_a_reason_does_not_build() -> None:
    handler = HANDLERS[BaseCommand.PING]
    with pytest.raises(TypeError):
        Command(handler)  # type: ignore[call-arg]
    for reason in ("", "  "):
        with pytest.raises(ValueError, match="handle_ping"):
            Command(handler, reason)


def test_commands_of_the_wire_are_about_less_than_the_cluster() -> None:
    cluster = {each for each in HANDLERS if _scope(each) is Scope.CLUSTER}
    assert cluster == {BaseCommand.END_TXN_ON_PARTITION, BaseCommand.END_TXN_ON_SUBSCRIPTION}


def _scope(number: int) -> Scope | None:
    needs = COMMANDS[number].needs
    return needs.scope if isinstance(needs, Action) else None
