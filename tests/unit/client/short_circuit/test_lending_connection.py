"""Asking a broker for files, over real sockets."""

from __future__ import annotations

import os
import socket
import threading
from array import array
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import accumulate, pairwise
from pathlib import Path

import pytest

from pulsar_py.client.short_circuit import lending_connection
from pulsar_py.client.short_circuit.lending_connection import (
    LendingConnection,
    NotLentError,
    StoredRun,
)
from pulsar_py.wire.short_circuit import (
    LendingBroker,
    LentRun,
    PlacesAnswer,
    PlacesRequest,
    encode_answer,
    encode_greeting,
    encode_refusal,
)
from tests.unit.client.lender import Answer, Lender, descriptors_count, here

ENTRIES = {(7, index): b"entry %d" % index for index in range(10)}


@pytest.fixture
def lender(tmp_path: Path) -> Iterator[Lender]:
    with Lender(tmp_path, ENTRIES) as lender:
        yield lender


@pytest.fixture(autouse=True)
def nothing_stays_open() -> Iterator[None]:
    before = descriptors_count()
    yield
    assert descriptors_count() <= before


def opened(lender: Lender, url: str | None = None) -> LendingConnection:
    return LendingConnection.open(lender.path, url or lender.service_url)


@pytest.fixture
def connection(lender: Lender) -> Iterator[LendingConnection]:
    connection = opened(lender)
    yield connection
    connection.close()


def ask(connection: LendingConnection, ledger: int, first: int, last: int) -> list[StoredRun]:
    connection.request(ledger, first, last, 1 << 20)
    return connection.answer()


def bytes_of(connection: LendingConnection, first: int, last: int) -> list[bytes]:
    found = []
    for descriptor, offset, lengths in ask(connection, 7, first, last):
        ends = [*accumulate(lengths, initial=offset)]
        found += [os.pread(descriptor, end - start, start) for start, end in pairwise(ends)]
    return found


def test_entries_are_where_the_broker_says(connection: LendingConnection) -> None:
    assert bytes_of(connection, 1, 4) == [ENTRIES[7, index] for index in range(1, 5)]
    assert bytes_of(connection, 5, 9) == [ENTRIES[7, index] for index in range(5, 10)]
    assert bytes_of(connection, 0, 0) == [ENTRIES[7, 0]]


def test_a_deleted_file_stays_readable(lender: Lender, connection: LendingConnection) -> None:
    places = ask(connection, 7, 0, 2)
    lender.files[0].unlink()
    assert os.pread(places[0].descriptor, 7, places[0].offset) == b"entry 0"


def test_the_broker_may_name_fewer_entries_or_none(connection: LendingConnection) -> None:
    assert len(bytes_of(connection, 8, 12)) == 2
    assert ask(connection, 7, 10, 12) == []
    assert ask(connection, 8, 0, 0) == []


def test_descriptors_are_not_inherited(connection: LendingConnection) -> None:
    places = ask(connection, 7, 0, 0)
    assert not os.get_inheritable(places[0].descriptor)


# --- which broker it is --------------------------------------------------------------------------


def greets(lender: Lender, *addresses: tuple[str, int], namespace: int = 0) -> None:
    lender.greeting = encode_greeting(LendingBroker(namespace or here(), addresses))


@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0"])
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_url_leads_to_the_broker(lender: Lender, address: str, host: str) -> None:
    greets(lender, (address, 6650))
    opened(lender, f"pulsar://{host}:6650").close()


def test_any_of_its_addresses_will_do(lender: Lender) -> None:
    greets(lender, ("::1", 6651), ("127.0.0.1", 6650), ("0.0.0.0", 6652))
    opened(lender, "pulsar://127.0.0.1:6650,127.0.0.1:6652").close()


@pytest.fixture
def other() -> Iterator[int]:
    """The port of another broker."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


def test_another_broker_of_this_machine_is_refused(lender: Lender, other: int) -> None:
    with pytest.raises(NotLentError, match=rf"leads to 127.0.0.1 port {other}, and .* port 6650"):
        opened(lender, f"pulsar://127.0.0.1:{other}")


def test_one_host_of_several_is_another_broker(lender: Lender, other: int) -> None:
    with pytest.raises(NotLentError, match=f"leads to 127.0.0.1 port {other}"):
        opened(lender, f"pulsar://127.0.0.1:6650,127.0.0.1:{other}")


def test_a_url_that_leads_to_nobody_is_refused(lender: Lender) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(NotLentError, match="leads to nobody"):
        opened(lender, f"pulsar://127.0.0.1:{port}")


def test_an_address_of_another_machine_is_refused(
    lender: Lender, monkeypatch: pytest.MonkeyPatch
) -> None:
    # 192.0.2.0/24 is nobody's; whether a packet there is answered depends on the network.
    monkeypatch.setattr(lending_connection, "_answers", lambda *_: True)
    greets(lender, ("0.0.0.0", 6650))
    with pytest.raises(NotLentError, match=r"leads to 192\.0\.2\.1 port 6650"):
        opened(lender, "pulsar://192.0.2.1:6650")


def test_another_network_namespace_is_refused(lender: Lender) -> None:
    greets(lender, ("127.0.0.1", 6650), namespace=here() + 1)
    with pytest.raises(NotLentError, match="another network namespace"):
        opened(lender)


# --- what brokers do not do ----------------------------------------------------------------------


def test_nobody_listens(tmp_path: Path) -> None:
    with pytest.raises(NotLentError, match="No such file"):
        LendingConnection.open(str(tmp_path / "none"), "pulsar://127.0.0.1:6650")
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(tmp_path / "left"))
    with pytest.raises(NotLentError, match="refused"):
        LendingConnection.open(str(tmp_path / "left"), "pulsar://127.0.0.1:6650")


GREETINGS = {
    "a refusal": (encode_refusal("all 256 connections are taken"), "all 256 connections are taken"),
    "an answer": (encode_answer(PlacesAnswer(7, 0)), "in place of a greeting"),
    "another protocol": (b"HTTP/1.1 400 Bad Request\r\n\r\n", "expected"),
    "another version": (b"\0\0\0\x10\x02\x04\0\0", "version 2, expected 1"),
}


@pytest.mark.parametrize("name", GREETINGS)
def test_whoever_listens_is_no_broker_that_lends(lender: Lender, name: str) -> None:
    lender.greeting, text = GREETINGS[name]
    with pytest.raises(NotLentError, match=text):
        opened(lender)


def test_a_broker_that_says_nothing(lender: Lender, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lending_connection, "TIMEOUT_SECONDS", 0.05)
    lender.greeting = b""
    with pytest.raises(NotLentError, match="timed out"):
        opened(lender)


def lent(count: int, *numbers: int, files: int | None = None, of: int = 0) -> Answer:
    """An answer with `count` entries of a file, and with so many descriptors."""
    runs = [LentRun(of, 0, array("I", [3] * count))] if count else []
    answer = encode_answer(PlacesAnswer(7, 0, runs, numbers))
    count = len(numbers) if files is None else files
    return answer, [os.open(__file__, os.O_RDONLY) for _ in range(count)]


ANSWERS: dict[str, tuple[Callable[[PlacesRequest], Answer], str]] = {
    "an end": (lambda _: (b"", []), "ended the connection"),
    "a refusal": (lambda _: (encode_refusal("too slow"), []), "too slow"),
    "garbage": (lambda _: (b"\xff" * 64, []), "expected"),
    "another entry": (lambda _: (encode_answer(PlacesAnswer(7, 1)), []), "no answer for entry"),
    "a greeting": (lambda _: (encode_greeting(LendingBroker(1, [])), []), "no answer for entry"),
    "more than was asked for": (lambda _: lent(3, 0), "3 entries, 2 were asked for"),
    "an unknown file": (lambda _: lent(1, 0, of=5), r"files \[5\], which never came"),
    "a file without a descriptor": (lambda _: lent(1, 0, files=0), "0 descriptors came"),
    "a descriptor too many": (lambda _: lent(1, 0, files=2), "2 descriptors came"),
    "more descriptors than there may be": (lambda _: lent(1, 0, files=17), "limit of open files"),
    "a file twice": (lambda _: lent(1, 0, 0), "2 descriptors came"),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_a_wrong_answer_is_an_error_and_leaves_no_descriptor(
    lender: Lender, connection: LendingConnection, name: str
) -> None:
    lender.answer, text = ANSWERS[name]
    with pytest.raises(NotLentError, match=text):
        ask(connection, 7, 0, 1)


@pytest.mark.parametrize("kind", ["c", "d", "p"])
def test_what_is_no_file_is_not_read(
    lender: Lender, connection: LendingConnection, tmp_path: Path, kind: str
) -> None:
    os.mkfifo(tmp_path / "pipe")
    paths = {"c": Path("/dev/zero"), "d": tmp_path, "p": tmp_path / "pipe"}
    descriptor = os.open(paths[kind], os.O_RDONLY | os.O_NONBLOCK)
    lender.answer = lambda _: (lent(1, 0, files=0)[0], [descriptor])
    with pytest.raises(NotLentError, match=rf": {kind}[rwx-]{{9}} came for file 0"):
        ask(connection, 7, 0, 0)


def raw(talk: Callable[[socket.socket], None]) -> tuple[LendingConnection, threading.Thread]:
    """A connection to whoever talks in a thread, after a greeting."""
    mine, other = socket.socketpair()

    def run() -> None:
        with other, suppress(OSError):
            talk(other)

    thread = threading.Thread(target=run)
    thread.start()
    return LendingConnection(mine, "path"), thread


def test_descriptors_without_end_are_not_taken() -> None:
    before = descriptors_count()

    def talk(other: socket.socket) -> None:
        for byte in encode_answer(PlacesAnswer(7, 0, [LentRun(0, 0, array("I", [1] * 200))])):
            socket.send_fds(other, [bytes([byte])], [0] * 5)

    connection, thread = raw(talk)
    try:
        with pytest.raises(NotLentError, match="20 descriptors came with an answer, at most 16"):
            ask(connection, 7, 0, 500)
    finally:
        connection.close()
        thread.join()
    assert descriptors_count() <= before


def test_a_byte_now_and_then_does_not_keep_an_answer_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lending_connection, "TIMEOUT_SECONDS", 0.2)
    ended = threading.Event()

    def talk(other: socket.socket) -> None:
        for byte in encode_answer(PlacesAnswer(7, 0, [LentRun(0, 0, array("I", [1] * 500))])):
            other.sendall(bytes([byte]))
            if ended.wait(0.02):
                break

    connection, thread = raw(talk)
    try:
        with pytest.raises(NotLentError, match="timed out"):
            ask(connection, 7, 0, 500)
    finally:
        ended.set()
        connection.close()
        thread.join()


def test_a_socket_of_another_user_is_not_talked_to(
    lender: Lender, monkeypatch: pytest.MonkeyPatch
) -> None:
    listening = [os.geteuid()]
    monkeypatch.setattr(lending_connection, "peer_user", lambda _: listening[0])
    monkeypatch.setattr(os, "geteuid", lambda: 1234)
    for listening[0] in (1234, 0):
        opened(lender).close()
    listening[0] = 4321
    with pytest.raises(NotLentError, match=r"user 4321 listens there, .* user 1234"):
        opened(lender)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    opened(lender).close()  # root is served by brokers of any user


def test_a_file_that_comes_again_is_an_error(lender: Lender, connection: LendingConnection) -> None:
    lender.answer = lambda _: lent(1, 0)
    ask(connection, 7, 0, 0)
    with pytest.raises(NotLentError, match=r"1 descriptors came for files \[0\]"):
        ask(connection, 7, 0, 0)
