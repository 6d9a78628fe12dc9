"""Micro benchmark of one ACK of a hundred message ids: `python -m benchmarks.micro_acks`.

Clients acknowledge in groups: at 1,000 messages a second, a hundred ids in one command every 100
ms, for which everything else on the broker's loop waits. A broker in this process has a backlog
that one consumer or two have been sent; one of them acknowledges it, each command after the one
before. Measured is `ServerCnx.data_received`, from the bytes of the frame to the cursor's state:
medians of the row's commands, in microseconds, with the processor's caches as the command before
left them, and emptied before each, as they are every 100 ms.

in order      neighbouring entries, as one consumer has them
every second  each second entry, as one of two consumers has them
shuffled      a hundred neighbours in any order
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
import tempfile
import time
from collections.abc import Sequence
from typing import Final

from benchmarks.loads import fresh_topic
from benchmarks.raw_client import RawConnection, entry, frame, send_block
from pulsar_py.proto.PulsarApi_pb2 import BaseCommand, CommandAck, CommandSubscribe
from pulsar_py.server.connection.server_cnx import ServerCnx

IDS_COUNT: Final = 100
COMMANDS_COUNT: Final = 200
KEYS_COUNT: Final = 100
CACHES_BYTES: Final = 32 << 20
TYPES: Final = ("Exclusive", "Shared", "Key_Shared")
ORDERS: Final = ("in order", "every second", "shuffled")
_LINE_BYTES: Final = 64


class Stopwatch:
    """Measures what connections do with each read."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self._served = ServerCnx.data_received

    def start(self) -> None:
        """Measure from now on."""
        served, seconds = self._served, self.seconds

        def data_received(self: ServerCnx, data: bytes | memoryview) -> None:
            began = time.perf_counter()
            served(self, data)
            seconds.append(time.perf_counter() - began)

        ServerCnx.data_received = data_received  # type: ignore[method-assign]

    def stop(self) -> None:
        """Measure no more."""
        ServerCnx.data_received = self._served  # type: ignore[method-assign]


def groups_of(order: str) -> list[list[int]]:
    """The entry ids of each command; all of them together are the backlog, each once."""
    count = IDS_COUNT * COMMANDS_COUNT
    ids = [*range(0, count, 2), *range(1, count, 2)] if order == "every second" else [*range(count)]
    groups = [ids[start : start + IDS_COUNT] for start in range(0, count, IDS_COUNT)]
    if order == "shuffled":
        for group in groups:
            random.Random(1).shuffle(group)
    return groups


def ack(ledger_id: int, entry_ids: Sequence[int]) -> bytes:
    """The frame of an ACK, as clients write it."""
    command = BaseCommand(type=BaseCommand.ACK)
    command.ack.consumer_id = 1
    command.ack.ack_type = CommandAck.Individual
    for entry_id in entry_ids:
        command.ack.message_id.add(ledgerId=ledger_id, entryId=entry_id)
    return frame(command)


async def measure(kind: str, order: str, *, is_cold: bool) -> list[float]:
    """The seconds of each command of a row."""
    from pulsar_py.standalone import Broker  # noqa: PLC0415  # The rest of the module needs none.

    groups = groups_of(order)
    caches = memoryview(bytearray(CACHES_BYTES))
    line = bytes(CACHES_BYTES // _LINE_BYTES)
    stopwatch = Stopwatch()
    with tempfile.TemporaryDirectory() as directory:
        async with Broker(data_dir=directory) as broker:
            host, _, port = broker.service_url.removeprefix("pulsar://").rpartition(":")
            connection = await RawConnection.connect(host, int(port))
            ledger_id = await _sent_backlog(connection, kind, IDS_COUNT * COMMANDS_COUNT)
            frames = [ack(ledger_id, group) for group in groups]
            stopwatch.start()
            try:
                for number, data in enumerate(frames, 1):
                    if is_cold:
                        caches[::_LINE_BYTES] = line
                    connection.write(data)
                    while len(stopwatch.seconds) < number:
                        await asyncio.sleep(0)
            finally:
                stopwatch.stop()
            connection.close()
    return stopwatch.seconds


async def _sent_backlog(connection: RawConnection, kind: str, count: int) -> int:
    """Have entries published and sent to a consumer; returns their ledger's id."""
    topic = fresh_topic()
    await connection.create_producer(topic, 1)
    await connection.subscribe(
        topic, "s", 1, from_earliest=True, kind=CommandSubscribe.SubType.Value(kind)
    )
    ledgers: set[int] = set()

    def on_frame(data: memoryview) -> None:
        size = int.from_bytes(data[4:8])
        command = BaseCommand.FromString(bytes(data[8 : 8 + size]))
        if command.type == BaseCommand.MESSAGE:
            ledgers.add(command.message.message_id.ledgerId)

    connection.start_counting()
    connection.on_frame = on_frame
    connection.flow(1, count)
    block = b"".join(
        send_block(1, number, 1, entry(b"x" * 100, key=f"k{number}"))
        for number in range(KEYS_COUNT)
    )
    for sent in range(KEYS_COUNT, count + 1, KEYS_COUNT):
        connection.write(block)
        while connection.frames_count < 2 * sent:
            await asyncio.sleep(0)
    assert len(ledgers) == 1, f"entries of one ledger, not of {ledgers}"
    return ledgers.pop()


def main() -> None:
    """Print a line a row."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=1)
    arguments = parser.parse_args()
    for _ in range(arguments.rounds):
        for kind in TYPES:
            for order in ORDERS:
                warm, cold = (
                    statistics.median(asyncio.run(measure(kind, order, is_cold=is_cold))) * 1e6
                    for is_cold in (False, True)
                )
                print(
                    f"{kind:<12}{order:<14}{warm:7.1f} us   caches emptied {cold:7.1f} us",
                    flush=True,
                )


if __name__ == "__main__":
    main()
