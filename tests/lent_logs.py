"""A reader of short-circuit reads, as simple as can be: it asks, is lent files, and reads them."""

from __future__ import annotations

import os
import socket
from array import array
from collections.abc import Iterator
from pathlib import Path

from pulsar_py.common.failures import OnFailure
from pulsar_py.wire.short_circuit import (
    MAX_NEW_FILES,
    AnswerDecoder,
    FromBroker,
    LendingBroker,
    PlacesAnswer,
    PlacesRequest,
    encode_request,
)

MIB = 1024 * 1024


class LogBorrower:
    """One connection. Its calls block: tests with a listener in their loop call it in a thread."""

    def __init__(self, path: Path | str, *, timeout: float = 10) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(timeout)
        with OnFailure(self.socket.close):
            self.socket.connect(str(path))
        self.files: dict[int, int] = {}  # descriptors by number
        self.unclaimed: list[int] = []  # descriptors whose answer has not come as a whole
        self._decoder = AnswerDecoder()
        self._received: list[FromBroker] = []

    def close(self) -> None:
        self.socket.close()
        for descriptor in [*self.files.values(), *self.unclaimed]:
            os.close(descriptor)
        self.files.clear()

    def greeting(self) -> LendingBroker:
        received = self.receive()
        assert isinstance(received, LendingBroker), received
        return received

    def send(self, request: PlacesRequest) -> None:
        self.socket.sendall(encode_request(request))

    def ask(
        self, ledger_id: int, first: int, last: int, limit_bytes: int = 10 * MIB
    ) -> PlacesAnswer:
        self.send(PlacesRequest(ledger_id, first, last, limit_bytes))
        answer = self.receive()
        assert isinstance(answer, PlacesAnswer), answer
        assert (answer.ledger_id, answer.first_entry_id) == (ledger_id, first)
        return answer

    def receive(self) -> FromBroker:
        """What comes next.

        Raises:
            EOFError: Nothing does.
        """
        while not self._received:
            space = socket.CMSG_SPACE(4 * MAX_NEW_FILES)
            data, ancillary, flags, _ = self.socket.recvmsg(MIB, space, socket.MSG_CMSG_CLOEXEC)
            assert not flags & socket.MSG_CTRUNC
            for _, _, rights in ancillary:
                self.unclaimed += array("i", rights)
            if not data:
                raise EOFError
            self._received += self._decoder.feed(data)
        received = self._received.pop(0)
        if isinstance(received, PlacesAnswer):
            for number in received.new_files:
                assert number not in self.files
                self.files[number] = self.unclaimed.pop(0)
        return received

    def entries(self, answer: PlacesAnswer) -> Iterator[bytes]:
        for run in answer.runs:
            at = run.offset
            for length in run.lengths:
                yield os.pread(self.files[run.file_number], length, at)
                at += length

    def read(
        self, ledger_id: int, first: int, last: int, limit_bytes: int = 10 * MIB
    ) -> list[bytes]:
        return list(self.entries(self.ask(ledger_id, first, last, limit_bytes)))
