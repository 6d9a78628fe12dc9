"""Serves commands that are too large for one turn of the loop in parts, or refuses them.

A command of at most `MAX_UNITS` bytes has at most as many units (ids, words of ack sets, pairs,
ranges, names), and is served without a pause. A larger one is examined before it is parsed:

    ACK, REDELIVER      served as many small ones of the same kind, one in each turn of the loop,
                        in order; the one answer comes after the last
    anything else       served without a pause if it has at most `MAX_UNITS` fields; else refused,
                        with ERROR if it has a request id

`ServerCnx` drives these generators: between two steps the loop serves other connections, and later
commands of the same connection wait until the end. What always holds, and is asserted: between two
yields at most `MAX_UNITS` units are handled.

`wire/large_commands.py` measures and splits encoded commands; this module serves them.

Apache Pulsar has no such bound: it serves every command that fits a frame, on a thread for each
connection.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from pulsar_py.common.errors import NotAllowedError, RemoteProtocolError
from pulsar_py.common.loops.work import MAX_IDS_A_TURN, MAX_UNITS
from pulsar_py.proto.PulsarApi_pb2 import (
    BaseCommand,
    CommandAck,
    CommandRedeliverUnacknowledgedMessages,
)
from pulsar_py.server.handlers.handle_consume import acknowledge_in_parts, redeliver_in_parts
from pulsar_py.wire import commands
from pulsar_py.wire.large_commands import (
    CutList,
    command_bytes,
    count_fields,
    cut_list,
    number_of,
    split_command,
    wire_fields,
)

if TYPE_CHECKING:
    from pulsar_py.server.handlers.command_connection import CommandConnection

Work = Generator[None, None, None]

_LISTS: Final[Mapping[int, int]] = {
    BaseCommand.ACK: CommandAck.MESSAGE_ID_FIELD_NUMBER,
    BaseCommand.REDELIVER_UNACKNOWLEDGED_MESSAGES: (
        CommandRedeliverUnacknowledgedMessages.MESSAGE_IDS_FIELD_NUMBER
    ),
}

# Any: each takes the parts of its own command.
_IN_PARTS: Final[Mapping[int, Callable[[CommandConnection, Iterator[Any]], Work]]] = {
    BaseCommand.ACK: acknowledge_in_parts,
    BaseCommand.REDELIVER_UNACKNOWLEDGED_MESSAGES: redeliver_in_parts,
}


def serve_large(cnx: CommandConnection, body: bytes, rest: bytes | None) -> Work:
    """Serve a command of more than `MAX_UNITS` bytes; the caller makes one step in each turn.

    Raises:
        RemoteProtocolError: It breaks the protocol.
    """
    kind, start, end = split_command(body)
    cnx.state.check(kind)  # type: ignore[arg-type]  # the stub lists literals
    is_small = False
    if kind in _LISTS:
        cut = yield from cut_list(
            body, start, end, _LISTS[kind], max_elements=MAX_IDS_A_TURN, max_bytes=MAX_UNITS
        )
        yield
        if _is_small(kind, cut.rest, 0, len(cut.rest)) and (
            yield from _are_small(kind, body, cut.stretches)
        ):
            if len(cut.stretches) > 1:
                yield from _IN_PARTS[kind](cnx, _parts(body, kind, cut))
                return
            is_small = True
    elif _is_small(kind, body, start, end):
        is_small = True
    yield
    if is_small:
        cnx.serve(commands.read_command(body), rest)
    else:
        yield from _refuse(cnx, kind, body, start, end)


def _are_small(
    kind: int, body: bytes, stretches: list[tuple[int, int]]
) -> Generator[None, None, bool]:
    """Whether each stretch has few units; only one that is a single long id may not."""
    for start, end in stretches:
        if end - start > MAX_UNITS:
            yield
            if not _is_small(kind, body, start, end):
                return False
    return True


def _refuse(cnx: CommandConnection, kind: int, body: bytes, start: int, end: int) -> Work:
    """Answer a command that has too many units; close the connection if it has no answer."""
    name = BaseCommand.Type.Name(kind)  # type: ignore[arg-type]  # the stub lists literals
    reason = f"{name} of {len(body)} bytes has more fields than the {MAX_UNITS} that are allowed"
    request_id = yield from _find_number(body, start, end, _number_in(kind, "request_id"))
    if kind == BaseCommand.ACK:
        consumer_id = yield from _find_number(body, start, end, CommandAck.CONSUMER_ID_FIELD_NUMBER)
        if request_id is not None and consumer_id in cnx.consumers:
            answer = commands.ack_response(
                consumer_id, request_id, code=NotAllowedError.code, message=reason
            )
            cnx.send(answer)
    elif request_id is None:
        raise RemoteProtocolError(reason)
    else:
        cnx.send_error(request_id, NotAllowedError(reason))


def _is_small(kind: int, data: bytes, start: int, end: int) -> bool:
    """Whether a message has so few fields that it may be served without a pause."""
    descriptor = BaseCommand.DESCRIPTOR.fields_by_number[kind].message_type
    assert descriptor is not None, "split_command knows the type"
    return count_fields(descriptor, data, start, end, MAX_UNITS) <= MAX_UNITS


def _parts(body: bytes, kind: int, cut: CutList) -> Iterator[Any]:
    """The command as several commands, each with a stretch of the list."""
    name = commands.FIELD_NAMES[kind]
    for start, end in cut.stretches:
        part = command_bytes(kind, cut.rest + body[start:end])
        yield getattr(commands.read_command(part), name)


def _number_in(kind: int, name: str) -> int:
    """The number of a field of the command, 0 if there is none of that name."""
    descriptor = BaseCommand.DESCRIPTOR.fields_by_number[kind].message_type
    assert descriptor is not None, "split_command knows the type"
    known = descriptor.fields_by_name.get(name)
    return 0 if known is None else known.number


def _find_number(
    body: bytes, start: int, end: int, number: int
) -> Generator[None, None, int | None]:
    """The value of the first field of that number."""
    for steps, each in enumerate(wire_fields(body, start, end), 1):
        if each.number == number:
            return number_of(body, each)
        if not steps % MAX_UNITS:
            yield
    return None
