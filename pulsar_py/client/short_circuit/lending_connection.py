"""`LendingConnection`: asks a broker of this machine where entries lie in its files (edge).

All calls block, for at most `TIMEOUT_SECONDS` each: they are made in a thread. A connection holds
the files that it was lent until it is closed; a file that the broker deletes meanwhile stays
readable. Whoever else listens at the path gets nothing to decide: a socket of another user is not
talked to, and what is no file, or more than an answer may have, ends the connection.

Brokers give their ledgers the same ids, so it matters which one this is. `open` checks that the
service URL leads here: each of its hosts is an address of this machine on which the broker says
that it listens, or nobody does.

Source: `wire.short_circuit`; unix(7) for descriptors.
"""

from __future__ import annotations

import errno
import os
import socket
import stat
import sys
from array import array
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from pulsar_py.client.brokers.service_url import ServiceUrl, host_and_port
from pulsar_py.common.errors import ClientError, RemoteProtocolError
from pulsar_py.common.failures import OnFailure
from pulsar_py.common.loops.clock import SystemClock
from pulsar_py.common.network.unix_sockets import peer_user
from pulsar_py.wire.short_circuit import (
    MAX_NEW_FILES,
    AnswerDecoder,
    FromBroker,
    LendingBroker,
    PlacesAnswer,
    PlacesRefusal,
    PlacesRequest,
    encode_request,
)

__all__ = ["LendingConnection", "NotLentError", "StoredRun"]

TIMEOUT_SECONDS: Final = 5.0
_BLOCK_BYTES: Final = 1 << 18
_LEAST_SECONDS: Final = 0.001
"""A time limit of zero would mean that nothing is waited for, with another error."""
_INT_BYTES: Final = array("i").itemsize
_ANCILLARY_BYTES: Final = socket.CMSG_SPACE(MAX_NEW_FILES * _INT_BYTES)
_NOBODY: Final = {
    errno.ECONNREFUSED,
    errno.EADDRNOTAVAIL,
    errno.EAFNOSUPPORT,
    errno.ENETUNREACH,
    errno.EHOSTUNREACH,
}
"""Errors of who connects to an address of which this machine has no listener, or no way there."""
_NAMESPACE: Final = Path("/proc/self/ns/net")
_ROOT: Final = 0


class NotLentError(ClientError):
    """The broker lends no files here; the text says why. Its entries are read through it."""


class StoredRun(NamedTuple):
    """Consecutive entries that lie one behind the other in a file."""

    descriptor: int
    """Of the file; belongs to the connection."""
    offset: int
    lengths: Sequence[int]
    """Of each entry; at least one."""


class LendingConnection:
    """A connection to the socket of a broker. Not thread-safe."""

    def __init__(self, connection: socket.socket, path: str) -> None:
        """Use a connected socket, and own it."""
        self._socket = connection
        self._path = path
        self._clock = SystemClock()
        self._decoder = AnswerDecoder()
        self._received: list[FromBroker] = []
        # What was asked and not answered yet.
        self._request: PlacesRequest | None = None
        # Descriptors that came with an answer which is not complete yet.
        self._descriptors: list[int] = []
        # Descriptors by the numbers that the broker has given to files.
        self._files: dict[int, int] = {}

    @classmethod
    def open(cls, path: str, service_url: str) -> LendingConnection:
        """Connect, and check that the service URL leads to the same broker.

        Raises:
            NotLentError: Nobody listens there, or it is not the broker of the service URL.
        """
        if sys.platform != "linux":
            raise NotLentError(f"{path}: on {sys.platform} no files are lent, on Linux alone")
        try:
            connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        except OSError as error:
            raise NotLentError(f"{path}: {error}") from error
        opened = cls(connection, path)
        with OnFailure(opened.close):
            try:
                connection.settimeout(TIMEOUT_SECONDS)
                connection.connect(path)
                _check_user(path, connection)
                opened._greet(service_url)
            except (OSError, RemoteProtocolError) as error:
                raise NotLentError(f"{path}: {error}") from error
        return opened

    def _greet(self, service_url: str) -> None:
        greeting = self._receive()
        if isinstance(greeting, PlacesRefusal):
            raise NotLentError(f"{self._path}: {greeting.reason}")
        if not isinstance(greeting, LendingBroker):
            raise RemoteProtocolError(f"{type(greeting).__name__} in place of a greeting")
        if _NAMESPACE.stat().st_ino != greeting.network_namespace:
            raise NotLentError(
                f"{self._path}: the broker is in another network namespace, where {service_url} "
                "may lead elsewhere"
            )
        _check_url(self._path, service_url, greeting)

    def request(
        self, ledger_id: int, first_entry_id: int, last_entry_id: int, limit_bytes: int
    ) -> None:
        """Ask where entries are; `answer` has to follow before the next request.

        Raises:
            NotLentError: The connection is broken; close it.
        """
        request = PlacesRequest(ledger_id, first_entry_id, last_entry_id, limit_bytes)
        assert self._request is None, "one request at a time"
        self._request = request
        try:
            self._socket.sendall(encode_request(request))
        except OSError as error:
            raise NotLentError(f"{self._path}: {error}") from error

    def answer(self) -> list[StoredRun]:
        """Where the entries are, from the first on; empty if that one has to come from the broker.

        Not all of them may be named; the others can be asked for.

        Raises:
            NotLentError: The broker refuses, or does not answer as it should; close the connection.
        """
        assert self._request is not None, "nothing was asked"
        request, self._request = self._request, None
        try:
            answer = self._receive()
            if isinstance(answer, PlacesRefusal):
                raise NotLentError(f"{self._path}: {answer.reason}")
            return self._runs(request, answer)
        except (OSError, RemoteProtocolError) as error:
            raise NotLentError(f"{self._path}: {error}") from error

    def _runs(self, request: PlacesRequest, answer: FromBroker) -> list[StoredRun]:
        asked = (request.ledger_id, request.first_entry_id)
        count = request.last_entry_id - request.first_entry_id + 1
        if not isinstance(answer, PlacesAnswer) or answer[:2] != asked:
            raise RemoteProtocolError(f"{type(answer).__name__} is no answer for entry {asked}")
        self._take_files(answer.new_files)
        if answer.entries_count > count:
            raise RemoteProtocolError(f"{answer.entries_count} entries, {count} were asked for")
        if unknown := {run.file_number for run in answer.runs} - self._files.keys():
            raise RemoteProtocolError(f"entries are in files {sorted(unknown)}, which never came")
        return [
            StoredRun(self._files[run.file_number], run.offset, run.lengths) for run in answer.runs
        ]

    def _take_files(self, numbers: Sequence[int]) -> None:
        """The descriptors that came are those of new files."""
        descriptors, self._descriptors = self._descriptors, []
        with OnFailure(partial(close_all, descriptors)):
            known = {*self._files, *numbers}
            if len(descriptors) != len(numbers) or len(known) < len(self._files) + len(numbers):
                raise RemoteProtocolError(
                    f"{len(descriptors)} descriptors came for files {[*numbers]}, and files"
                    f" {sorted(self._files)} were there"
                )
            for number, descriptor in zip(numbers, descriptors, strict=True):
                mode = os.fstat(descriptor).st_mode
                if not stat.S_ISREG(mode):  # a device or a pipe may never have the bytes
                    raise RemoteProtocolError(f"{stat.filemode(mode)} came for file {number}")
        self._files.update(zip(numbers, descriptors, strict=True))

    def _receive(self) -> FromBroker:
        """The next thing that the broker says."""
        deadline = self._clock.monotonic_seconds() + TIMEOUT_SECONDS
        while not self._received:
            # Of the whole frame: a byte now and then does not keep it waiting.
            left = deadline - self._clock.monotonic_seconds()
            self._socket.settimeout(max(left, _LEAST_SECONDS))
            # `socket.recv_fds` would drop the flag, and child processes inherit the descriptors.
            data, ancillary, flags, _ = self._socket.recvmsg(
                _BLOCK_BYTES, _ANCILLARY_BYTES, socket.MSG_CMSG_CLOEXEC
            )
            self._descriptors += _descriptors_of(ancillary)
            if len(self._descriptors) > MAX_NEW_FILES:
                raise RemoteProtocolError(
                    f"{len(self._descriptors)} descriptors came with an answer, at most"
                    f" {MAX_NEW_FILES} do"
                )
            if flags & socket.MSG_CTRUNC:
                raise RemoteProtocolError(
                    "not all files could be received; is the limit of open files too low?"
                )
            if not data:
                raise RemoteProtocolError("the broker has ended the connection")
            self._received += self._decoder.feed(data)
        return self._received.pop(0)

    def close(self) -> None:
        """Close the connection and all files that came over it."""
        self._socket.close()
        close_all([*self._descriptors, *self._files.values()])
        self._descriptors.clear()
        self._files.clear()


def _descriptors_of(ancillary: Sequence[tuple[int, int, bytes]]) -> Iterator[int]:
    for level, kind, data in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            yield from array("i", data[: len(data) // _INT_BYTES * _INT_BYTES])


def close_all(descriptors: Iterable[int]) -> None:
    """Close descriptors of files that were only read."""
    for each in descriptors:
        with suppress(OSError):
            os.close(each)


def _check_user(path: str, connection: socket.socket) -> None:
    """Check that whoever listens may be a broker that serves this user.

    Another user could have put a socket of his own where nobody listened, and would say what is in
    the topics. Root is served by brokers of any user.
    """
    own, listening = os.geteuid(), peer_user(connection)
    if own != _ROOT and listening not in {own, _ROOT}:
        raise NotLentError(
            f"{path}: user {listening} listens there, which lends nothing to user {own}: expected"
            " a broker of the same user"
        )


def _check_url(path: str, service_url: str, broker: LendingBroker) -> None:
    """Check that whoever uses the service URL gets to this broker, and to no other."""
    leads_here = False
    for host, port in map(host_and_port, ServiceUrl.parse(service_url).hosts):
        for family, _, _, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
            ip = str(address[0])
            if _is_here(family, ip) and broker.listens_on(ip, port):
                leads_here = True
            elif _answers(family, ip, port):
                raise NotLentError(
                    f"{path}: {service_url} leads to {ip} port {port}, and the broker of the socket"
                    f" listens on {_listed(broker)} of this machine"
                )
    if not leads_here:
        raise NotLentError(
            f"{path}: {service_url} leads to nobody, and the broker of the socket listens on"
            f" {_listed(broker)} of this machine"
        )


def _listed(broker: LendingBroker) -> str:
    return ", ".join(f"{ip} port {port}" for ip, port in broker.addresses) or "nothing"


def _is_here(family: int, ip: str) -> bool:
    """Whether an IP address is one of this machine."""
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((ip, 0))
    except OSError:
        return False
    return True


def _answers(family: int, ip: str, port: int) -> bool:
    """Whether somebody listens there, or may; a name may have addresses that nobody uses."""
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.settimeout(TIMEOUT_SECONDS)
            probe.connect((ip, port))
    except OSError as error:
        return error.errno not in _NOBODY
    return True
