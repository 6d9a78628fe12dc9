"""What a socket takes is written, the rest is returned; and nobody else's descriptor is touched."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from collections.abc import Iterator

import pytest

from pulsar_py.client.brokers.direct_socket import direct_socket, turn_of


class Transport:
    """As much of a transport as a `DirectSocket` needs."""

    def __init__(self, sock: socket.socket | None, ssl_object: object = None) -> None:
        self.infos = {"socket": sock, "ssl_object": ssl_object}

    def get_extra_info(self, name: str) -> object:
        return self.infos[name]


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    with ours, theirs:
        yield ours, theirs


def test_frames_are_written_in_one_piece(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    direct = direct_socket(Transport(ours))
    assert direct.send([b"ab", memoryview(b"cd"), b"e"]) == b""
    assert theirs.recv(10) == b"abcde"
    direct.close()
    ours.send(b"f")  # the transport's own descriptor is as open as before
    assert theirs.recv(10) == b"f"


def test_what_does_not_fit_is_returned(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    direct = direct_socket(Transport(ours))
    data = bytes(range(256)) * 20_000
    rest = direct.send([data[:100], data[100:]])
    assert rest
    assert direct.send([b"next"]) == b"next"
    taken = b""
    while len(taken) < len(data) - len(rest):
        taken += theirs.recv(1 << 20)
    assert taken + rest == data
    direct.close()


def test_a_broken_socket_is_the_transports_to_report(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    ours, theirs = pair
    direct = direct_socket(Transport(ours))
    theirs.close()
    assert direct.send([b"ab", b"c"]) == b"abc"
    direct.close()


def test_there_is_none_where_the_transport_encrypts_or_has_no_socket(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    assert direct_socket(Transport(pair[0], ssl_object=object())) is None
    assert direct_socket(Transport(None)) is None


def test_a_process_without_descriptors_does_without_it(
    pair: tuple[socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: int) -> int:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(os, "dup", fail)
    assert direct_socket(Transport(pair[0])) is None


async def test_a_plain_loop_has_no_turns() -> None:
    assert turn_of(asyncio.get_running_loop()) is None
