"""Connections that send and acknowledge at once."""

from __future__ import annotations

import gc
import os
import pickle
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from pulsar_py.spark.shared import worker_process
from pulsar_py.spark.shared.worker_process import (
    SentToWorkers,
    has_small_buffers,
    send_and_acknowledge_at_once,
    spare_the_collector,
)
from pulsar_py.spark.sink import PulsarBatchWriter, PulsarStreamWriter
from pulsar_py.spark.source import PulsarBatchReader, PulsarStreamReader

pytestmark = pytest.mark.skipif(not hasattr(socket, "TCP_QUICKACK"), reason="only Linux has it")


@pytest.fixture
def connection() -> Iterator[socket.socket]:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as ours,
        server.accept()[0],
    ):
        yield ours


def acknowledges_at_once(connection: socket.socket) -> bool:
    return bool(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK))


def test_a_connection_that_looked_like_a_dialogue_no_longer_does(
    connection: socket.socket,
) -> None:
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 0)
    assert not acknowledges_at_once(connection)

    send_and_acknowledge_at_once()

    assert acknowledges_at_once(connection)


def sends_at_once(connection: socket.socket) -> bool:
    return bool(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))


def test_the_end_of_what_a_connection_sends_waits_for_no_acknowledgement(
    connection: socket.socket,
) -> None:
    assert not sends_at_once(connection)

    send_and_acknowledge_at_once()

    assert sends_at_once(connection)


@pytest.mark.parametrize(
    "kind", [PulsarBatchReader, PulsarStreamReader, PulsarBatchWriter, PulsarStreamWriter]
)
def test_what_tasks_are_given_spares_their_connections_delays(
    kind: type[SentToWorkers], connection: socket.socket
) -> None:
    sent = kind.__new__(kind)
    sent.__dict__.update(_task="a task", _stream=None)
    pickled = pickle.dumps(sent)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 0)

    arrived = pickle.loads(pickled)

    assert acknowledges_at_once(connection)
    assert sends_at_once(connection)
    assert type(arrived) is kind
    assert vars(arrived) == vars(sent)


def test_what_else_a_process_has_open_stays_as_it_is(connection: socket.socket) -> None:
    ours, theirs = socket.socketpair()
    reading, writing = os.pipe()
    with ours, theirs, closing(os.fdopen(reading)), closing(os.fdopen(writing, "w")) as pipe:
        send_and_acknowledge_at_once()

        ours.send(b"still")
        assert theirs.recv(5) == b"still"
        pipe.write("open")
        connection.send(b"too")


def test_no_socket_becomes_another_where_there_is_a_default_timeout(
    connection: socket.socket,
) -> None:
    socket.setdefaulttimeout(5)
    try:
        send_and_acknowledge_at_once()
        assert os.get_blocking(connection.fileno())
    finally:
        socket.setdefaulttimeout(None)


def test_that_nothing_can_be_listed_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_process, "_DESCRIPTORS", Path("/nowhere/at/all"))

    send_and_acknowledge_at_once()


@pytest.mark.parametrize(
    ("told", "is_small"), [(None, False), ("false", False), ("true", True), ("True", True)]
)
def test_only_a_unix_socket_of_spark_holds_less_than_a_batch(
    monkeypatch: pytest.MonkeyPatch,
    told: str | None,
    is_small: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    monkeypatch.delenv("PYTHON_UNIX_DOMAIN_ENABLED", raising=False)
    if told is not None:
        monkeypatch.setenv("PYTHON_UNIX_DOMAIN_ENABLED", told)

    assert has_small_buffers() is is_small


def test_what_is_loaded_is_left_out_of_the_search_for_cycles_once() -> None:
    before = gc.get_freeze_count()
    try:
        spare_the_collector.__wrapped__()
        assert gc.get_freeze_count() > before
    finally:
        gc.unfreeze()
