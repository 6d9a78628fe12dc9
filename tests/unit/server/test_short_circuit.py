"""The Unix socket over which entry logs are lent: real sockets, real files."""

# ruff: noqa: ASYNC240 - whether a file is there

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from array import array
from collections.abc import AsyncIterator, Callable, Container
from contextlib import asynccontextmanager
from pathlib import Path
from typing import ParamSpec, TypeVar

import pytest

from pulsar_py.common.disks.local_disk import LocalDisk
from pulsar_py.common.disks.memory_disk import MemoryDisk
from pulsar_py.common.errors import ConfigurationError, StorageError
from pulsar_py.ledgers.store import LedgerStore
from pulsar_py.server import short_circuit
from pulsar_py.server.short_circuit import LendingStore, ShortCircuitListener
from pulsar_py.storage.bookie import Bookie
from pulsar_py.storage.entry_logs.places import PlacedRun, PlaceLimits, Places
from pulsar_py.testing.hostile_ledgers import HostileLedgers
from pulsar_py.wire.short_circuit import (
    MAX_ENTRIES,
    MAX_LIMIT_BYTES,
    MAX_RUNS,
    LendingBroker,
    PlacesAnswer,
    PlacesRefusal,
    PlacesRequest,
    encode_request,
)
from tests.lent_logs import LogBorrower
from tests.unit.storage.support import entry, start, write

P = ParamSpec("P")
T = TypeVar("T")

ADDRESSES = [("127.0.0.1", 6650), ("::1", 6650)]
ENTRIES = [entry(number) for number in range(100)]


def aside(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> asyncio.Future[T]:
    """Call it in a thread: the listener is in this loop."""
    return asyncio.get_running_loop().run_in_executor(None, lambda: work(*args, **kwargs))


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A path that is short enough, wherever temporary files are."""
    monkeypatch.chdir(tmp_path)
    return Path("s")


@pytest.fixture
async def bookie(tmp_path: Path) -> AsyncIterator[Bookie]:
    """An engine with ledger 1, whose entries are in logs."""
    made = await start(LocalDisk(tmp_path / "ledgers"), entry_log_bytes=6_000)
    writer, _ = await write(made, 100)
    assert writer.ledger_id == LEDGER
    await made.flush()
    yield made
    await made.close()


LEDGER = 1


@asynccontextmanager
async def serving(
    store: LendingStore,
    path: Path,
    *,
    may_lend: Callable[[], bool] = lambda: True,
    max_connections: int = 10,
    seconds: float = 10.0,
) -> AsyncIterator[ShortCircuitListener]:
    listener = ShortCircuitListener(
        store,
        path,
        may_lend=may_lend,
        max_connections=max_connections,
        idle_seconds=seconds,
        taking_seconds=seconds,
    )
    listener.bind()
    listener.serve(ADDRESSES)
    try:
        yield listener
    finally:
        await listener.close()


def bound(store: LedgerStore, path: Path) -> ShortCircuitListener | None:
    return ShortCircuitListener.bound(store, path, may_lend=lambda: True)


@asynccontextmanager
async def borrower(path: Path) -> AsyncIterator[LogBorrower]:
    """Somebody who is connected."""
    made = await aside(LogBorrower, path)
    try:
        await aside(made.greeting)
        yield made
    finally:
        made.close()


def descriptors_count() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - how many


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.001)


async def test_who_connects_is_told_which_broker_this_is(bookie: Bookie, path: Path) -> None:
    async with serving(bookie, path):
        reader = await aside(LogBorrower, path)
        namespace = Path("/proc/self/ns/net").stat().st_ino
        assert await aside(reader.greeting) == LendingBroker(namespace, ADDRESSES)
        reader.close()


async def test_entries_are_read_from_the_files(bookie: Bookie, path: Path) -> None:
    async with serving(bookie, path), borrower(path) as reader, borrower(path) as other:
        assert await aside(reader.read, LEDGER, 0, 99) == ENTRIES
        assert len(reader.files) == 2
        answer = await aside(reader.ask, LEDGER, 15, 2**63 - 1, MAX_LIMIT_BYTES)
        assert not answer.new_files
        assert list(reader.entries(answer)) == ENTRIES[15:]
        assert await aside(reader.read, LEDGER, 3, 99, 250) == ENTRIES[3:5]
        assert await aside(reader.read, LEDGER, 3, 99, 1) == ENTRIES[3:4]
        assert await aside(other.read, LEDGER, 50, 50) == ENTRIES[50:51]


async def test_what_is_not_there_is_an_empty_answer(bookie: Bookie, path: Path) -> None:
    unflushed, _ = await write(bookie, 5)
    async with serving(bookie, path), borrower(path) as reader:
        for ledger_id, first in ((0, 0), (999, 0), (2**63 - 1, 0), (LEDGER, 100)):
            assert await aside(reader.read, ledger_id, first, 2**63 - 1) == []
        assert await aside(reader.read, unflushed.ledger_id, 0, 4) == []
        await bookie.flush()
        assert await aside(reader.read, unflushed.ledger_id, 0, 4) == ENTRIES[:5]
        await bookie.delete(LEDGER)
        assert await aside(reader.read, LEDGER, 0, 99) == []
        await bookie.close()
        assert await aside(reader.read, unflushed.ledger_id, 0, 4) == []


async def test_while_nothing_may_be_lent_all_answers_are_empty(bookie: Bookie, path: Path) -> None:
    may_lend = [True, False, True]
    async with serving(bookie, path, may_lend=lambda: may_lend.pop(0)), borrower(path) as reader:
        assert await aside(reader.read, LEDGER, 0, 99) == ENTRIES
        assert await aside(reader.read, LEDGER, 0, 99) == []
        assert await aside(reader.read, LEDGER, 0, 99) == ENTRIES


async def test_requests_that_come_together_are_answered_in_order(
    bookie: Bookie, path: Path
) -> None:
    async with serving(bookie, path), borrower(path) as reader:
        requests = [PlacesRequest(LEDGER, first, first, 1) for first in range(100)]
        reader.socket.sendall(b"".join(map(encode_request, requests)))
        for first in range(100):
            answer = await aside(reader.receive)
            assert isinstance(answer, PlacesAnswer)
            assert list(reader.entries(answer)) == [ENTRIES[first]]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "version 47, expected 1"),
        (b"\xff" * 100, "version 255, expected 1"),
        (bytes.fromhex("000000210101") + bytes(31), "request of 33 bytes, expected 32 to 32"),
        (bytes.fromhex("000000200102") + bytes(30), "kind 2, expected request"),
        (bytes.fromhex("000000200101") + bytes(30), "limit of 0 bytes, expected 1 to"),
        (bytes.fromhex("000000200101") + b"\xff" * 30, "expected an id of 0 to"),
    ],
)
async def test_who_sends_something_else_is_told_and_left(
    bookie: Bookie, path: Path, data: bytes, reason: str
) -> None:
    async with serving(bookie, path), borrower(path) as good, borrower(path) as bad:
        good_request = encode_request(PlacesRequest(LEDGER, 0, 0, 1))
        await aside(bad.socket.sendall, good_request + data + good_request)
        refusal = await aside(bad.receive)
        if isinstance(refusal, PlacesAnswer):  # that of what came before
            refusal = await aside(bad.receive)
        assert isinstance(refusal, PlacesRefusal)
        assert reason in refusal.reason
        with pytest.raises((EOFError, ConnectionResetError)):
            await aside(bad.receive)
        assert await aside(good.read, LEDGER, 0, 99) == ENTRIES


async def test_files_that_a_reader_sends_do_not_stay(bookie: Bookie, path: Path) -> None:
    async with serving(bookie, path), borrower(path) as reader:
        assert await aside(reader.read, LEDGER, 0, 0)
        before = descriptors_count()
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array("i", [0] * 100))]
        for _ in range(10):
            reader.socket.sendmsg([encode_request(PlacesRequest(LEDGER, 0, 0, 1))], rights)
            assert await aside(reader.receive)
        assert descriptors_count() == before


async def test_who_takes_no_answers_is_left_and_nobody_waits_for_it(
    bookie: Bookie, path: Path
) -> None:
    async with serving(bookie, path, seconds=0.3) as listener, borrower(path) as slow:
        slow.socket.setblocking(False)
        data = encode_request(PlacesRequest(LEDGER, 0, 99, MAX_LIMIT_BYTES)) * 1000
        sent = 0
        while sent < 3_000_000:  # until neither side's buffer has room
            try:
                sent += slow.socket.send(data)
            except BlockingIOError:
                await asyncio.sleep(0.01)
                if sent and not await _takes_more(slow.socket, data):
                    break
        async with borrower(path) as reader:
            assert await aside(reader.read, LEDGER, 0, 99) == ENTRIES
            assert listener.connections_count == 2
        await until(lambda: listener.connections_count == 0)


async def _takes_more(connected: socket.socket, data: bytes) -> bool:
    await asyncio.sleep(0.05)
    try:
        return connected.send(data) > 0
    except BlockingIOError:
        return False


async def test_who_asks_nothing_is_left(bookie: Bookie, path: Path) -> None:
    async with serving(bookie, path, seconds=0.05) as listener, borrower(path) as idle:
        idle.socket.send(b"\0\0\0")
        assert await aside(idle.receive) == PlacesRefusal("no request for 0.05 seconds")
        with pytest.raises((EOFError, ConnectionResetError)):
            await aside(idle.receive)
        await until(lambda: listener.connections_count == 0)


async def test_a_thousand_connections(bookie: Bookie, path: Path) -> None:
    async with serving(bookie, path, max_connections=50) as listener:
        readers = [await aside(LogBorrower, path) for _ in range(50)]
        for reader in readers:
            await aside(reader.greeting)
        before = descriptors_count()

        def crowd() -> None:
            for _ in range(1000):
                refused = LogBorrower(path)
                reason = "50 connections are open, which is the limit: close some"
                assert refused.receive() == PlacesRefusal(reason)
                refused.close()

        await aside(crowd)
        assert descriptors_count() == before
        assert await aside(readers[7].read, LEDGER, 0, 99) == ENTRIES
        readers.pop().close()
        await until(lambda: listener.connections_count == 49)
        async with borrower(path) as late:
            assert await aside(late.read, LEDGER, 0, 99) == ENTRIES
        for reader in readers:
            reader.close()
        await until(lambda: listener.connections_count == 0)


async def test_readers_that_leave_at_any_moment_leave_nothing(bookie: Bookie, path: Path) -> None:
    async with serving(bookie, path, max_connections=100) as listener:
        async with borrower(path) as reader:
            await aside(reader.read, LEDGER, 0, 99)
        await until(lambda: listener.connections_count == 0)
        before = descriptors_count()
        for turns in range(40):
            leaving = socket.socket(socket.AF_UNIX)
            leaving.connect(str(path))
            leaving.sendall(encode_request(PlacesRequest(LEDGER, 0, 99, MAX_LIMIT_BYTES))[:20])
            for _ in range(turns % 8):
                await asyncio.sleep(0)
            leaving.sendall(encode_request(PlacesRequest(LEDGER, 0, 99, MAX_LIMIT_BYTES))[20:])
            for _ in range(turns):
                await asyncio.sleep(0)
            leaving.close()
        await until(lambda: listener.connections_count == 0)
        assert descriptors_count() == before


@pytest.mark.parametrize(("user", "is_served"), [(0, True), (4711, True), (4712, False)])
async def test_users(
    bookie: Bookie, path: Path, monkeypatch: pytest.MonkeyPatch, user: int, *, is_served: bool
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    monkeypatch.setattr(short_circuit, "peer_user", lambda _: user)
    async with serving(bookie, path):
        reader = await aside(LogBorrower, path)
        received = await aside(reader.receive)
        if is_served:
            assert isinstance(received, LendingBroker)
        else:
            reason = "user 4712 may not read here: expected that of the broker, 4711"
            assert received == PlacesRefusal(reason)
        reader.close()


OTHER_USER = """
import os, socket, sys
os.setgid(65534), os.setuid(65534)
made = socket.socket(socket.AF_UNIX)
made.settimeout(10)
try:
    made.connect(sys.argv[1])
    print(made.recv(1000))
except PermissionError as error:
    print("no permission")
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
async def test_another_user_gets_nothing(bookie: Bookie) -> None:
    directory = Path(f"/tmp/short-circuit-{os.getpid()}")
    directory.mkdir(mode=0o755)
    path = directory / "s"

    def try_as_other() -> str:
        command = [sys.executable, "-c", OTHER_USER, str(path)]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    try:
        async with serving(bookie, path):
            assert await aside(try_as_other) == "no permission\n"
            path.chmod(0o666)
            assert "user 65534 may not read here" in await aside(try_as_other)
    finally:
        directory.rmdir()


class SlowStore:
    """Answers when it may."""

    def __init__(self) -> None:
        self.may_answer = asyncio.Event()
        self.working_count = self.most_count = self.calls_count = 0
        self.error: Exception | None = None

    async def places(
        self,
        ledger_id: int,
        first_entry_id: int,
        last_entry_id: int,
        *,
        limits: PlaceLimits,
        held_logs: Container[int],
    ) -> Places:
        self.calls_count += 1
        self.working_count += 1
        self.most_count = max(self.most_count, self.working_count)
        try:
            await self.may_answer.wait()
        finally:
            self.working_count -= 1
        if self.error is not None:
            raise self.error
        return Places()


async def test_a_few_are_answered_at_a_time(path: Path) -> None:
    store = SlowStore()
    async with serving(store, path):
        readers = [await aside(LogBorrower, path) for _ in range(6)]
        for reader in readers:
            await aside(reader.greeting)
            reader.send(PlacesRequest(1, 0, 0, 1))
        await until(lambda: store.working_count == 2)
        store.may_answer.set()
        for reader in readers:
            assert await aside(reader.receive) == PlacesAnswer(1, 0, [], [])
            reader.close()
    assert store.most_count == 2
    assert store.calls_count == 6


async def test_errors_of_the_storage_are_empty_answers(path: Path) -> None:
    store = SlowStore()
    store.may_answer.set()
    store.error = StorageError("too many open files")
    async with serving(store, path), borrower(path) as reader:
        for _ in range(3):
            assert await aside(reader.read, 1, 0, 0) == []


async def test_closing_ends_connections_in_the_middle_of_their_requests(path: Path) -> None:
    store = SlowStore()
    async with serving(store, path) as listener:
        reader = await aside(LogBorrower, path)
        await aside(reader.greeting)
        reader.send(PlacesRequest(1, 0, 0, 1))
        await until(lambda: store.working_count == 1)
    assert store.working_count == listener.connections_count == 0
    with pytest.raises((EOFError, ConnectionResetError)):
        await aside(reader.receive)
    reader.close()
    assert not path.exists()
    await listener.close()


async def test_closing_leaves_the_socket_of_another(path: Path) -> None:
    async with serving(SlowStore(), path):
        path.unlink()
        async with serving(SlowStore(), path) as second:
            pass
        assert not path.exists()
        second = ShortCircuitListener(SlowStore(), path, may_lend=lambda: True)
        second.bind()
    assert path.exists()
    await second.close()
    assert not path.exists()


async def test_a_failure_to_accept_passes(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(short_circuit, "_PAUSE_SECONDS", 0.001)
    loop = asyncio.get_running_loop()
    accept, failures = loop.sock_accept, iter([OSError(24, "Too many open files")] * 2)

    async def failing_accept(listening: socket.socket) -> tuple[socket.socket, object]:
        if (error := next(failures, None)) is not None:
            raise error
        return await accept(listening)

    monkeypatch.setattr(loop, "sock_accept", failing_accept)
    async with serving(SlowStore(), path), borrower(path):
        assert caplog.text.count("short-circuit reader not accepted") == 2


async def in_memory(_: Path) -> LedgerStore:
    return await start(MemoryDisk(), is_volatile=True)


async def of_others(_: Path) -> LedgerStore:
    return object.__new__(HostileLedgers)


@pytest.mark.parametrize("make", [in_memory, of_others])
async def test_a_store_without_files_lends_none(
    path: Path,
    caplog: pytest.LogCaptureFixture,
    make: Callable[[Path], asyncio.Future[LedgerStore]],
) -> None:
    store = await make(path)
    assert bound(store, path) is None
    assert not path.exists()
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert record.__dict__["reason"] == "the ledgers are not in files of this broker"
    assert record.__dict__["shortCircuitSocketPath"] == "s"
    if isinstance(store, Bookie):
        await store.close()


async def test_a_path_that_is_too_long_is_a_warning(
    bookie: Bookie, caplog: pytest.LogCaptureFixture
) -> None:
    assert bound(bookie, Path("s" * 108)) is None
    (record,) = caplog.records
    assert record.__dict__["reason"] == (
        "the path has 108 bytes, the system takes socket paths of at most 107: choose a shorter one"
    )


async def test_without_users_of_sockets_there_is_none(
    bookie: Bookie,
    path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(socket, "SO_PEERCRED")
    assert bound(bookie, path) is None
    assert caplog.records[0].__dict__["reason"] == "the system does not say which user connects"


async def test_a_path_that_is_taken_is_an_error(bookie: Bookie, path: Path) -> None:
    first = bound(bookie, path)
    assert first is not None
    with pytest.raises(ConfigurationError, match="s: another process listens there"):
        bound(bookie, path)
    await first.close()
    second = bound(bookie, path)
    assert second is not None
    await second.close()


class _ManyEntries(LendingStore):
    """Says of as many entries as it may, in as many runs, where they are, of a file that is held."""

    async def places(
        self,
        ledger_id: int,
        first_entry_id: int,
        last_entry_id: int,
        *,
        limits: PlaceLimits,
        held_logs: Container[int],
    ) -> Places:
        del ledger_id, first_entry_id, last_entry_id, held_logs
        lengths = array("I", [100] * (limits.entries_count // limits.runs_count))
        places = Places()
        places.runs += [PlacedRun(1, number, lengths) for number in range(limits.runs_count)]
        return places


async def test_the_largest_answer_need_not_be_taken_at_once(path: Path) -> None:
    async with serving(_ManyEntries(), path, seconds=0.1), borrower(path) as reader:
        await aside(reader.send, PlacesRequest(LEDGER, 0, MAX_ENTRIES, MAX_LIMIT_BYTES))
        await asyncio.sleep(0.5)
        answer = await aside(reader.receive)
        assert isinstance(answer, PlacesAnswer)
        assert (answer.entries_count, len(answer.runs)) == (MAX_ENTRIES, MAX_RUNS)
