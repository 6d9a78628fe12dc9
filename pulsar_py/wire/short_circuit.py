"""Requests and answers of short-circuit reads: where a ledger's entries lie in files (pure).

A reader on the broker's machine asks over a Unix stream socket where entries are stored, is lent
the files (their descriptors come with the answer, as `SCM_RIGHTS`), and reads the bytes itself. All
numbers are big-endian. A frame:

    u32  bytes that follow     u8  version, 1     u8  kind     u16  a count, or zero

The broker begins each connection with a greeting (kind 4), which goes on with

    u64  inode of its network namespace
    for each of the addresses that it listens on, as many as the count says:
        u16 port, u16 4 or 6, 16 bytes of the IP address, of IPv4 the first four and zeros

Brokers give their ledgers the same ids. So the reader compares: only whom its service URL leads to
one of these addresses, in the same namespace, reads here what it would get from there. A request
(kind 1) goes on with

    u32  limit in bytes of the entries that the answer names
    u64  ledger id             u64  first entry id             u64  last entry id, inclusive

an answer (kind 2), whose count is that of its files, with

    u32  runs
    u64  ledger id             u64  first entry id, both as asked for
    for each of the files: u64 its number; the descriptors come with the answer's first byte, in
        this order
    for each of the runs: u64 number of a file, u64 offset in it, u32 count of entries n, at least
        one; n times u32 length of an entry's bytes, which lie one behind the other

and a refusal (kind 3) with a text in UTF-8: why the connection ends with it.

The runs are consecutive from the first entry that was asked for. That entry is named whatever the
limit; the answer may end early anywhere, and it is empty where the entry is in no file, or not for
sure: then the broker has to be asked for it. A number means the same file as long as the
connection lasts, and its descriptor comes once. Answers come in the order of requests.

Source: short-circuit local reads of HDFS, for the idea; the format is our own.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Callable, Sequence
from ipaddress import ip_address
from struct import Struct
from typing import Final, NamedTuple, TypeAlias

from pulsar_py.common.errors import LocalProtocolError, RemoteProtocolError

VERSION: Final = 1
MAX_LIMIT_BYTES: Final = 256 * 1024 * 1024
"""The most bytes that one request may ask for."""
MAX_RUNS: Final = 4096
"""Of one answer."""
MAX_ENTRIES: Final = 65_536
"""Of one answer, in all of its runs."""
MAX_NEW_FILES: Final = 16
"""Descriptors that come with one answer."""
MAX_ADDRESSES: Final = 64
"""Of one greeting."""
MAX_REFUSAL_BYTES: Final = 1000
MAX_ID: Final = 2**63 - 1
"""The greatest ledger id, entry id and offset."""
MAX_ENTRY_BYTES: Final = 2**31 - 1

_REQUEST: Final = 1
_ANSWER: Final = 2
_REFUSAL: Final = 3
_GREETING: Final = 4
_KINDS: Final = {
    _REQUEST: "request",
    _ANSWER: "answer",
    _REFUSAL: "refusal",
    _GREETING: "greeting",
}

_SIZE: Final = Struct(">I")
_HEAD: Final = Struct(">BBH")
_REQUEST_BODY: Final = Struct(">IQQQ")
_ANSWER_BODY: Final = Struct(">IQQ")
_RUN: Final = Struct(">QQI")
_NAMESPACE: Final = Struct(">Q")
_ADDRESS: Final = Struct(">HH16s")
_IP_SIZES: Final = {4: 4, 6: 16}

_REQUEST_SIZE: Final = _HEAD.size + _REQUEST_BODY.size
MAX_ANSWER_BYTES: Final = (
    _HEAD.size + _ANSWER_BODY.size + 8 * MAX_NEW_FILES + _RUN.size * MAX_RUNS + 4 * MAX_ENTRIES
)
"""Of an answer's frame, without its size."""


class LendingBroker(NamedTuple):
    """The greeting: which broker this is."""

    network_namespace: int
    """Inode of `/proc/self/ns/net`: addresses mean the same only within one."""
    addresses: Sequence[tuple[str, int]]
    """IP addresses and ports of the binary protocol that are bound; an IP address may be that for
    all of its kind, `0.0.0.0` or `::`."""

    def listens_on(self, ip: str, port: int) -> bool:
        """Whether who connects to this address of the machine gets to this broker.

        Whether it is one of this machine is for the caller to find out.
        """
        everywhere = "::" if ":" in ip else "0.0.0.0"  # noqa: S104 - recognised, not bound
        return (ip, port) in self.addresses or (everywhere, port) in self.addresses


class PlacesRequest(NamedTuple):
    """Asks where entries of a ledger are."""

    ledger_id: int
    first_entry_id: int
    last_entry_id: int
    """Inclusive."""
    limit_bytes: int
    """At least 1; the first entry may be longer."""


class LentRun(NamedTuple):
    """Consecutive entries of a ledger that lie one behind the other in a file."""

    file_number: int
    offset: int
    lengths: Sequence[int]
    """Of each entry's bytes; at least one."""


class PlacesAnswer(NamedTuple):
    """Where the first of the entries asked for are, as far as they can be read from files."""

    ledger_id: int
    first_entry_id: int
    runs: Sequence[LentRun] = ()
    """Consecutive from `first_entry_id` on; none: ask the broker."""
    new_files: Sequence[int] = ()
    """Numbers of the files whose descriptors come with this answer, in this order."""

    @property
    def entries_count(self) -> int:
        """Entries of all runs."""
        return sum(len(run.lengths) for run in self.runs)


class PlacesRefusal(NamedTuple):
    """Why the broker ends the connection."""

    reason: str


FromBroker: TypeAlias = LendingBroker | PlacesAnswer | PlacesRefusal
"""What a broker sends."""


def encode_greeting(broker: LendingBroker) -> bytes:
    """The frame of a greeting; addresses beyond the limit are left out."""
    addresses = broker.addresses[:MAX_ADDRESSES]
    ips = [(ip_address(ip), port) for ip, port in addresses]
    return _sized(
        [
            _HEAD.pack(VERSION, _GREETING, len(addresses)),
            _NAMESPACE.pack(broker.network_namespace),
            *(_ADDRESS.pack(port, ip.version, ip.packed) for ip, port in ips),
        ]
    )


def encode_request(request: PlacesRequest) -> bytes:
    """The frame of a request.

    Raises:
        LocalProtocolError: It is none that a broker would answer.
    """
    wrong = _wrong_request(request)
    if wrong:
        raise LocalProtocolError(wrong)
    ledger_id, first_entry_id, last_entry_id, limit_bytes = request
    return (
        _SIZE.pack(_REQUEST_SIZE)
        + _HEAD.pack(VERSION, _REQUEST, 0)
        + _REQUEST_BODY.pack(limit_bytes, ledger_id, first_entry_id, last_entry_id)
    )


def encode_answer(answer: PlacesAnswer) -> bytes:
    """The frame of an answer, which is within the limits."""
    assert len(answer.new_files) <= MAX_NEW_FILES, answer.new_files
    assert len(answer.runs) <= MAX_RUNS, len(answer.runs)
    assert answer.entries_count <= MAX_ENTRIES, answer.entries_count
    parts = [
        _HEAD.pack(VERSION, _ANSWER, len(answer.new_files)),
        _ANSWER_BODY.pack(len(answer.runs), answer.ledger_id, answer.first_entry_id),
        *(number.to_bytes(8) for number in answer.new_files),
    ]
    for file_number, offset, lengths in answer.runs:
        parts.append(_RUN.pack(file_number, offset, len(lengths)))
        parts.append(_swapped(array("I", lengths)).tobytes())
    return _sized(parts)


def encode_refusal(reason: str) -> bytes:
    """The frame of a refusal; a longer reason is cut."""
    text = reason.encode()[:MAX_REFUSAL_BYTES].decode(errors="ignore").encode()
    return _sized([_HEAD.pack(VERSION, _REFUSAL, 0), text])


class RequestDecoder:
    """Cuts what a reader sends into requests; one for each connection of a broker."""

    def __init__(self) -> None:
        self._frames = _FrameCutter({_REQUEST: range(_REQUEST_SIZE, _REQUEST_SIZE + 1)})

    def feed(self, data: bytes) -> list[PlacesRequest]:
        """The requests that end in `data`.

        Raises:
            RemoteProtocolError: What came is no request, or one with numbers out of bounds.
        """
        return [_decode_request(body) for _, body in self._frames.feed(data)]


class AnswerDecoder:
    """Cuts what a broker sends into answers; one for each connection of a reader."""

    def __init__(self) -> None:
        self._frames = _FrameCutter(
            {
                _ANSWER: range(_HEAD.size + _ANSWER_BODY.size, MAX_ANSWER_BYTES + 1),
                _REFUSAL: range(_HEAD.size, _HEAD.size + MAX_REFUSAL_BYTES + 1),
                _GREETING: range(
                    _HEAD.size + _NAMESPACE.size,
                    _HEAD.size + _NAMESPACE.size + MAX_ADDRESSES * _ADDRESS.size + 1,
                ),
            }
        )

    def feed(self, data: bytes) -> list[FromBroker]:
        """The greeting, answers and the refusal that end in `data`.

        Descriptors came with the first bytes of their answers.

        Raises:
            RemoteProtocolError: What came is none of these, or contradicts itself.
        """
        return [_DECODERS[kind](body) for kind, body in self._frames.feed(data)]


class _FrameCutter:
    """Keeps the beginning of at most one frame; a wrong one is refused when its head is there."""

    def __init__(self, sizes: dict[int, range]) -> None:
        # By kind: how many bytes may follow the size.
        self._sizes = sizes
        self._expected = " or ".join(f"{_KINDS[kind]} (kind {kind})" for kind in sizes)
        self._pending = b""

    def feed(self, data: bytes) -> list[tuple[int, bytes]]:
        """The frames that end in `data`, each as its kind and what follows its size."""
        data = self._pending + data
        frames = []
        start = 0
        while len(data) - start >= _SIZE.size + _HEAD.size:
            (size,) = _SIZE.unpack_from(data, start)
            version, kind, _ = _HEAD.unpack_from(data, start + _SIZE.size)
            self._check(size, version, kind)
            end = start + _SIZE.size + size
            if end > len(data):
                break
            frames.append((kind, data[start + _SIZE.size : end]))
            start = end
        self._pending = data[start:]
        return frames

    def _check(self, size: int, version: int, kind: int) -> None:
        if version != VERSION:
            raise RemoteProtocolError(
                f"short-circuit read: version {version}, expected {VERSION}: use the same version "
                "of pulsar_py on both sides"
            )
        if kind not in self._sizes:
            raise RemoteProtocolError(f"short-circuit read: kind {kind}, expected {self._expected}")
        sizes = self._sizes[kind]
        if size not in sizes:
            raise RemoteProtocolError(
                f"short-circuit read: {_KINDS[kind]} of {size} bytes, expected {sizes.start} to "
                f"{sizes.stop - 1}"
            )


def _decode_request(body: bytes) -> PlacesRequest:
    limit_bytes, ledger_id, first, last = _REQUEST_BODY.unpack_from(body, _HEAD.size)
    request = PlacesRequest(ledger_id, first, last, limit_bytes)
    wrong = _wrong_request(request)
    if wrong:
        raise RemoteProtocolError(wrong)
    return request


def _wrong_request(request: PlacesRequest) -> str:
    """What is wrong with a request; empty if nothing is."""
    ledger_id, first_entry_id, last_entry_id, limit_bytes = request
    entries = f"short-circuit read: ledger {ledger_id}: entries {first_entry_id} to {last_entry_id}"
    if not 0 <= ledger_id <= MAX_ID:
        return f"short-circuit read: ledger {ledger_id}: expected an id of 0 to {MAX_ID}"
    if not 0 <= first_entry_id <= last_entry_id <= MAX_ID:
        return f"{entries}: expected ids of 0 to {MAX_ID} in ascending order"
    if not 1 <= limit_bytes <= MAX_LIMIT_BYTES:
        return f"{entries}: limit of {limit_bytes} bytes, expected 1 to {MAX_LIMIT_BYTES}"
    return ""


def _decode_answer(body: bytes) -> PlacesAnswer:
    *_, files_count = _HEAD.unpack_from(body)
    runs_count, ledger_id, first_entry_id = _ANSWER_BODY.unpack_from(body, _HEAD.size)
    place = _HEAD.size + _ANSWER_BODY.size
    files_end = place + 8 * files_count
    name = f"short-circuit read: answer for ledger {ledger_id} from entry {first_entry_id} on"
    if files_count > MAX_NEW_FILES or runs_count > MAX_RUNS or files_end > len(body):
        raise RemoteProtocolError(
            f"{name}: {runs_count} runs and {files_count} files in {len(body)} bytes, expected at "
            f"most {MAX_RUNS} and {MAX_NEW_FILES}"
        )
    new_files = [int.from_bytes(body[at : at + 8]) for at in range(place, files_end, 8)]
    place = files_end
    runs = []
    for number in range(runs_count):
        start = place + _RUN.size
        if start > len(body):
            raise RemoteProtocolError(f"{name}: ends in run {number} of {runs_count}")
        file_number, offset, count = _RUN.unpack_from(body, place)
        place = start + 4 * count
        if not count or place > len(body):
            raise RemoteProtocolError(
                f"{name}: run {number}: {count} entries in {len(body) - start} bytes"
            )
        lengths = _swapped(array("I", body[start:place]))
        if max(lengths) > MAX_ENTRY_BYTES or offset + sum(lengths) > MAX_ID:
            raise RemoteProtocolError(
                f"{name}: run {number}: longest entry of {max(lengths)} bytes at offset {offset}, "
                f"expected at most {MAX_ENTRY_BYTES} and {MAX_ID}"
            )
        runs.append(LentRun(file_number, offset, lengths))
    if place != len(body):
        raise RemoteProtocolError(f"{name}: {len(body) - place} bytes behind the last run")
    return PlacesAnswer(ledger_id, first_entry_id, runs, new_files)


def _decode_refusal(body: bytes) -> PlacesRefusal:
    return PlacesRefusal(body[_HEAD.size :].decode(errors="replace"))


def _decode_greeting(body: bytes) -> LendingBroker:
    *_, count = _HEAD.unpack_from(body)
    (network_namespace,) = _NAMESPACE.unpack_from(body, _HEAD.size)
    start = _HEAD.size + _NAMESPACE.size
    if len(body) - start != count * _ADDRESS.size:
        raise RemoteProtocolError(
            f"short-circuit read: greeting with {count} addresses in {len(body) - start} bytes, "
            f"expected {count * _ADDRESS.size}"
        )
    addresses = []
    for port, version, ip in _ADDRESS.iter_unpack(body[start:]):
        if version not in _IP_SIZES:
            raise RemoteProtocolError(
                f"short-circuit read: greeting with an address of IP version {version}, "
                "expected 4 or 6"
            )
        addresses.append((str(ip_address(ip[: _IP_SIZES[version]])), port))
    return LendingBroker(network_namespace, addresses)


_DECODERS: Final[dict[int, Callable[[bytes], FromBroker]]] = {
    _ANSWER: _decode_answer,
    _REFUSAL: _decode_refusal,
    _GREETING: _decode_greeting,
}


def _sized(parts: list[bytes]) -> bytes:
    data = b"".join(parts)
    return _SIZE.pack(len(data)) + data


def _swapped(numbers: array[int]) -> array[int]:
    """From the machine's order of bytes to the format's, or back, in place."""
    if sys.byteorder == "little":
        numbers.byteswap()
    return numbers
