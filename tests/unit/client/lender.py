"""A broker's socket for short-circuit reads, as a thread over real sockets and files."""

from __future__ import annotations

import os
import socket
import threading
from array import array
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Self

from pulsar_py.client.messages.message import EntryKey
from pulsar_py.wire.short_circuit import (
    LendingBroker,
    LentRun,
    PlacesAnswer,
    PlacesRequest,
    RequestDecoder,
    encode_answer,
    encode_greeting,
)

BETWEEN = b"what lies between runs"
Answer = tuple[bytes, list[int]]
"""Bytes, and the descriptors that go with the first of them."""


def here() -> int:
    """The network namespace of this process."""
    return Path("/proc/self/ns/net").stat().st_ino


def descriptors_count() -> int:
    return len([*Path("/proc/self/fd").iterdir()])


class Lender:
    """Lends what it wrote to files: `per_run` entries lie together, `per_file` are in a file.

    Tests replace `greeting` and `answer`, which gives what goes out for a request.
    """

    def __init__(
        self,
        directory: Path,
        entries: Mapping[EntryKey, bytes],
        *,
        port: int = 6650,
        per_run: int = 3,
        per_file: int = 6,
    ) -> None:
        # A short path: temporary directories may have long ones.
        self._directory = os.open(directory, os.O_RDONLY)
        self.path = f"/proc/{os.getpid()}/fd/{self._directory}/lender.socket"
        self.service_url = f"pulsar://127.0.0.1:{port}"
        self.greeting = encode_greeting(LendingBroker(here(), [("127.0.0.1", port)]))
        self.answer: Callable[[PlacesRequest], Answer] = self.usual_answer
        self.requests: list[PlacesRequest] = []
        self.files: list[Path] = []
        # File, place in it and number of its run by entry.
        self.places: dict[EntryKey, tuple[int, int, int, int]] = {}
        self._write(directory, entries, per_run, per_file)
        self._lent: set[int] = set()
        self._listener = socket.socket(socket.AF_UNIX)
        self._connections: list[socket.socket] = []
        self._thread = threading.Thread(target=self._serve)

    def _write(
        self, directory: Path, entries: Mapping[EntryKey, bytes], per_run: int, per_file: int
    ) -> None:
        for number, (key, data) in enumerate(entries.items()):
            if number % per_file == 0:
                self.files.append(directory / f"log-{len(self.files)}")
                self.files[-1].touch()
            path = self.files[-1]
            with path.open("ab") as file:
                if number % per_run == 0:
                    file.write(BETWEEN)
                at = file.tell()
                file.write(data)
            self.places[key] = (len(self.files) - 1, at, len(data), number // per_run)

    def __enter__(self) -> Self:
        self._listener.bind(self.path)
        self._listener.listen()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        # Ends `accept`, which closing does not.
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()
        for each in self._connections:
            each.close()
        os.close(self._directory)

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                self._lent.clear()
                self._connections.append(connection)
                connection.settimeout(20)
                self._converse(connection)

    def _converse(self, connection: socket.socket) -> None:
        """Serve one connection, then the next."""
        decoder = RequestDecoder()
        with connection, suppress(OSError):
            connection.sendall(self.greeting)
            while data := connection.recv(1 << 16):
                for request in decoder.feed(data):
                    self.requests.append(request)
                    frame, descriptors = self.answer(request)
                    try:
                        sent = socket.send_fds(connection, [frame], descriptors) if frame else 0
                    finally:
                        for each in descriptors:
                            os.close(each)
                    if not frame:
                        return
                    connection.sendall(frame[sent:])

    def usual_answer(self, request: PlacesRequest) -> Answer:
        """Names all that is asked for and was written."""
        runs: list[LentRun] = []
        new: list[int] = []
        last_run = -1
        for entry_id in range(request.first_entry_id, request.last_entry_id + 1):
            place = self.places.get((request.ledger_id, entry_id))
            if place is None:
                break
            file, at, size, run = place
            if run == last_run:
                runs[-1].lengths.append(size)  # type: ignore[attr-defined]
                continue
            last_run = run
            if file not in self._lent:
                self._lent.add(file)
                new.append(file)
            runs.append(LentRun(file, at, array("I", [size])))
        answer = PlacesAnswer(request.ledger_id, request.first_entry_id, runs, new)
        return encode_answer(answer), [os.open(self.files[each], os.O_RDONLY) for each in new]
