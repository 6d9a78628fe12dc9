"""What benchmarks work out of their measurements."""

from __future__ import annotations

import asyncio
import os
import struct
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest

from benchmarks import __main__ as table
from benchmarks import bare_loops, tails, traced_broker
from benchmarks.bare_loops import bare_groups, bare_syncs
from benchmarks.limited_rows import those_named
from benchmarks.loads import Figures, TimedMessages, pause
from benchmarks.moments import (
    Messages,
    Percentiles,
    joined_times,
    shares,
    under_way,
    worst_moments,
)
from benchmarks.raw_client import RawConnection, StampedSends, entry, frame, send_block
from benchmarks.tails import Limit, Load, Rounds, limits_of, step, stolen_watched
from benchmarks.targets import Target
from benchmarks.traced_broker import ProcessorTimes, Trace
from pulsar_py.proto.PulsarApi_pb2 import (
    BaseCommand,
    CommandMessage,
    CommandPing,
    CommandSendError,
    CommandSendReceipt,
    MessageIdData,
    ServerError,
)


def test_worst_moments_do_not_overlap() -> None:
    times = [(0, 10), (5, 30), (31, 35), (30, 33), (40, 45)]
    assert list(worst_moments(times, 8)) == [(5, 30), (40, 45), (31, 35)]
    assert list(worst_moments(times, 1)) == [(5, 30)]


def test_what_was_under_way_is_counted_once_and_only_within_the_moment() -> None:
    millisecond = 1_000_000
    spans = [
        ("flush", 11 * millisecond, 40 * millisecond),
        ("loop late", 5 * millisecond, 12 * millisecond),
        ("loop late", 0, 10 * millisecond),
        ("before", 0, 4 * millisecond),
        ("after", 20 * millisecond, 21 * millisecond),
    ]
    found = under_way(spans, 4 * millisecond, 20 * millisecond)
    assert found == [("flush", 9.0), ("loop late", 8.0)]


def test_a_bare_loop_ends_with_its_time_on_a_slow_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fdatasync", lambda _: threading.Event().wait(0.02))
    assert 1 <= len(bare_syncs(tmp_path, 0.05)) <= 3


async def test_a_step_that_takes_too_long_is_named() -> None:
    with pytest.raises(RuntimeError, match=r"the fill: not done after 0\.01 s"):
        async with step("the fill", 0.01):
            await asyncio.sleep(60)


async def test_a_timeout_within_a_step_is_not_taken_for_its_limit() -> None:
    with pytest.raises(RuntimeError, match="the fill: something in it timed out"):
        async with step("the fill", 60):
            raise TimeoutError


def _load(p999: float, narrow: float, wide: float, *, missing_count: int = 0) -> Load:
    bare = Percentiles(1, 1, 1, 1)
    messages = Messages.of([(0, int(p999 * 1e6))] * 9)
    limits = [Limit("narrow", narrow), Limit("wide", wide)]
    return Load(messages, bare, limits, bare, missing_count)


def test_the_median_of_the_rounds_is_judged_against_the_median_of_their_limits() -> None:
    loads = [_load(6, 5, 20), _load(900, 8, 30), _load(7, 6, 24), _load(40, 70, 280)]
    rounds = Rounds("1 a second", loads)

    assert rounds.p999 == 23.5
    assert [limit.millis for limit in rounds.limits()] == [7, 27]
    assert rounds.within_counts() == [1, 3]
    assert rounds.beyond() == ["1 a second: p99.9 23.50 ms, BEYOND 7.00 ms (narrow)"]


def test_messages_that_did_not_come_are_beyond_any_limit_whatever_the_median_is() -> None:
    loads = [_load(4, 5, 7), _load(4, 5, 7, missing_count=1), _load(4, 5, 7)]

    assert Rounds("1 a second", loads[:1]).beyond() == []
    rounds = Rounds("1 a second", loads)
    assert rounds.within_counts() == [2, 2]
    assert rounds.beyond() == ["1 a second: 1 messages did not come in time"]


def test_worst_moments_are_shown_of_the_worst_and_of_the_median_round() -> None:
    slow, middle, quick = _load(9, 5, 7), _load(8, 5, 7), _load(7, 5, 7)

    shown = Rounds("1 a second", [quick, slow, middle]).worst_and_median()
    assert shown == {"round 2, the worst": slow, "round 3, the median": middle}
    shown = Rounds("1 a second", [slow]).worst_and_median()
    assert shown == {"round 1, the worst and the median": slow}


def test_all_rounds_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    Rounds("1 a second", [_load(6, 5, 20), _load(900, 8, 30), _load(7, 6, 24)]).print()

    lines = capsys.readouterr().out.splitlines()
    p999s = [float(line.split()[3]) for line in lines if line.split()[:1] in (["1"], ["2"], ["3"])]
    assert p999s == [6, 900, 7]
    assert lines[-2:] == [
        "    median p99.9 7.00 ms, BEYOND 6.00 ms (narrow); 0 of 3 were within theirs",
        "    median p99.9 7.00 ms, within 24.00 ms (wide); 2 of 3 were within theirs",
    ]


def test_half_of_the_rate_has_a_limit_for_each_reading() -> None:
    assert [limit.millis for limit in limits_of(1.0, is_half_rate=False)] == [5.0]
    assert [limit.millis for limit in limits_of(15.0, is_half_rate=False)] == [45.0]
    assert [limit.millis for limit in limits_of(1.0, is_half_rate=True)] == [5.0, 20.0]
    assert [limit.millis for limit in limits_of(15.0, is_half_rate=True)] == [60.0, 180.0]


def test_what_was_under_way_with_the_slowest_messages_is_a_share_of_their_time() -> None:
    times = [(0, 10), (100, 300), (150, 350), (400, 410)]
    slowest = joined_times(Messages.of(times * 50).slowest)
    assert slowest == [(100, 350)]
    spans = [("flush", 0, 200), ("sync", 300, 325), ("sync", 310, 400), ("after", 360, 400)]
    assert shares(spans, slowest) == pytest.approx({"flush": 0.4, "sync": 0.2})


def test_it_is_noted_when_the_host_took_a_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tails, "STOLEN_SECONDS", 0.001)
    trace, seen, ticks = Trace(), threading.Event(), iter([7, 7, 9])

    def look() -> int:
        found = next(ticks, None)
        if found is None:
            seen.set()
        return found or 9

    monkeypatch.setattr(traced_broker, "SHORTEST_NANOS", 0)
    with stolen_watched(trace, look):
        assert seen.wait(10)
    [(name, start, end)] = trace.spans
    assert name == "machine: its host took a processor"
    assert start < end


def test_a_bare_loop_of_groups_has_a_time_for_each_and_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bare_loops, "BARE_FILE_BYTES", 4 << 20)
    before = time.perf_counter()
    millis = bare_groups(tmp_path, 5_000, seconds=0.05)
    took = (time.perf_counter() - before) * 1e3

    assert 1 <= len(millis) <= 50 * 5
    assert all(0 < each < took for each in millis)
    assert not list(tmp_path.iterdir())


def test_the_time_that_a_thread_worked_is_told_from_the_time_that_it_slept() -> None:
    with closing(ProcessorTimes()) as times:
        threading.Event().wait(0.02)
        assert times.nanos()[0] < 15_000_000
        begun = time.thread_time()
        while time.thread_time() < begun + 0.05:  # the system counts in ticks of up to 10 ms
            pass
        assert times.nanos()[0] >= 30_000_000


_ENDED = """
import os, signal
from benchmarks.limited_rows import say_how_it_ends
say_how_it_ends()
print("one row")
try:
    os.kill(os.getpid(), signal.SIGTERM)
finally:
    print("the broker is stopped")
"""


def test_a_run_that_is_ended_has_said_what_it_knew_and_that_it_was_ended() -> None:
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONUNBUFFERED"}
    ended = subprocess.run(
        [sys.executable, "-c", _ENDED], capture_output=True, text=True, env=environment, check=False
    )
    assert ended.returncode == 1
    assert ended.stdout.splitlines() == ["one row", "the broker is stopped"]
    assert "ended by SIGTERM" in ended.stderr


class _Transport(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        del high, low

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written.append(bytes(data))


def _counting() -> tuple[RawConnection, _Transport]:
    connection, transport = RawConnection(), _Transport()
    connection.connection_made(transport)
    connection.start_counting()
    return connection, transport


def _message(stamp: int) -> bytes:
    message = CommandMessage(consumer_id=1, message_id=MessageIdData(ledgerId=1, entryId=stamp))
    command = BaseCommand(type=BaseCommand.MESSAGE, message=message)
    return frame(command, bytes(16) + struct.pack(">Q", stamp))


async def test_messages_of_one_write_have_its_time_and_each_the_time_at_which_it_came() -> None:
    connection, _ = _counting()
    timed = TimedMessages(connection)
    timed.sent(7, 3)
    timed.sent(8, 1)

    connection.data_received(_message(7) * 2)
    connection.data_received(_message(7) + _message(8) + _message(9)[:20])

    assert [sent for sent, _ in timed.times] == [7, 7, 7, 8]
    first, second, third, fourth = (received for _, received in timed.times)
    assert first == second < third == fourth


def test_what_is_sent_at_a_rate_has_ascending_ids_as_of_a_real_producer() -> None:
    padding, counts = bytes(range(100)), (1, 70, 40_000, 1)
    sends, next_id = StampedSends(7, padding), 1 << 21
    for number, count in enumerate(counts):
        stamp = struct.pack(">Q", number)
        expected = send_block(7, next_id, count, entry(padding + stamp))
        assert sends.frames(stamp, count) == expected
        next_id += count


async def test_a_message_that_is_not_the_next_one_ends_a_load() -> None:
    connection, _ = _counting()
    timed = TimedMessages(connection)
    timed.sent(7, 1)
    timed.sent(8, 1)
    connection.data_received(
        _message(7) + frame(BaseCommand(type=BaseCommand.PING, ping=CommandPing()))
    )
    with pytest.raises(RuntimeError, match="message 2 was sent at 8, what came at 7"):
        connection.data_received(_message(7))
    with pytest.raises(RuntimeError, match="1 messages came that were not sent"):
        connection.data_received(_message(8))


async def test_a_refused_message_ends_a_load_with_the_reason() -> None:
    connection, _ = _counting()
    receipt = CommandSendReceipt(producer_id=1, sequence_id=1)
    connection.data_received(
        frame(BaseCommand(type=BaseCommand.SEND_RECEIPT, send_receipt=receipt))
    )
    await pause(0, connection)
    error = CommandSendError(
        producer_id=1, sequence_id=2, error=ServerError.PersistenceError, message="disk full"
    )
    connection.data_received(frame(BaseCommand(type=BaseCommand.SEND_ERROR, send_error=error)))
    with pytest.raises(RuntimeError, match=r"SEND_ERROR.*disk full"):
        await pause(60, connection)


async def test_a_connection_that_the_broker_closes_ends_a_load_and_a_request() -> None:
    connection, _ = _counting()
    connection.connection_lost(ConnectionResetError("reset"))
    with pytest.raises(RuntimeError, match=r"closed the connection \(reset"):
        await pause(60, connection)
    with pytest.raises(RuntimeError, match=r"closed the connection \(reset"):
        await connection.answer()


async def test_a_ping_is_answered_and_not_counted() -> None:
    connection, transport = _counting()
    connection.data_received(frame(BaseCommand(type=BaseCommand.PING, ping=CommandPing())))
    assert connection.frames_count == 0
    assert len(transport.written) == 1


def test_a_load_that_our_broker_breaks_off_is_missing_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = Target("pulsar_py", "127.0.0.1", 1, None)
    monkeypatch.setattr(table, "start_ours", lambda *_, **__: ours)

    async def breaks_off(target: Target, seconds: float) -> Figures:
        raise RuntimeError(f"{target.name} closed the connection after {seconds} s")

    async def is_measured(_: Target, seconds: float) -> Figures:
        return Figures(entries_per_second=1000 / seconds)

    chosen = [table.Load("bad", breaks_off), table.Load("good", is_measured)]
    found, missing = table.measure_brokers(chosen, [], tmp_path, rounds=1, seconds=1.0)
    assert list(found) == ["good"]
    [line] = missing
    assert line.startswith("bad: not measured: RuntimeError('pulsar_py closed the connection")


def test_a_name_that_no_row_has_is_refused_with_the_names_there_are() -> None:
    rows = ["publish, 1 KB", "publish, 16 KB", "catch-up", "catch-up"]
    assert those_named("--only", "publish", rows, str) == rows[:2]
    assert those_named("--only", "", rows, str) == rows
    assert those_named("--only", "start", rows, str, besides=("start",)) == []
    with pytest.raises(SystemExit) as refused:
        those_named("--only", "tails", rows, str, besides=("start",))
    assert str(refused.value).splitlines() == [
        "--only 'tails': none of these has that in it:",
        "    publish, 1 KB",
        "    publish, 16 KB",
        "    catch-up",
    ]
