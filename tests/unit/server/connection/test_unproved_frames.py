from __future__ import annotations

import pytest

from pulsar_py.common.errors import RemoteProtocolError
from pulsar_py.common.loops.work import MAX_UNITS
from pulsar_py.proto.PulsarApi_pb2 import (
    CommandAuthResponse,
    CommandFlow,
    CommandPing,
    CommandPong,
    CommandSend,
)
from pulsar_py.server.connection.unproved_frames import UnprovedFrames
from pulsar_py.server.connection.waiting_publishes import FRAME_BYTES
from pulsar_py.wire.commands import serialize
from pulsar_py.wire.framing import Frame

PING, PONG, AUTH_RESPONSE = (
    Frame(serialize(each), None) for each in (CommandPing(), CommandPong(), CommandAuthResponse())
)
FLOW = Frame(serialize(CommandFlow(consumer_id=1, messagePermits=5)), None)


def send(payload: bytes) -> Frame:
    return Frame(serialize(CommandSend(producer_id=1, sequence_id=0)), payload)


def test_keep_alive_and_the_answer_are_served_and_all_else_waits_in_order() -> None:
    unproved = UnprovedFrames(10_000)
    long_ping = Frame(PING.command + bytes(MAX_UNITS), None)
    assert unproved.keep([FLOW, PING, send(b"a"), PONG]) == [PING, PONG]
    assert unproved.keep([send(b"b"), AUTH_RESPONSE, FLOW]) == [AUTH_RESPONSE]
    assert unproved.frames == [FLOW, send(b"a"), send(b"b"), FLOW]
    assert UnprovedFrames(2 * MAX_UNITS).keep([long_ping]) == []


def test_more_than_may_wait_breaks_the_protocol() -> None:
    first = send(bytes(900))
    size_bytes = FRAME_BYTES + len(first.command) + 900
    unproved = UnprovedFrames(2 * size_bytes)
    assert unproved.keep([first]) == []
    assert unproved.keep([first]) == []
    assert unproved.keep([PING] * 100) == [PING] * 100
    with pytest.raises(RemoteProtocolError, match="more was sent than waits for credentials"):
        unproved.keep([FLOW])


def test_a_command_that_can_not_be_read_breaks_the_protocol() -> None:
    with pytest.raises(RemoteProtocolError):
        UnprovedFrames(10_000).keep([Frame(b"\xff", None)])
