"""Measures functions of `wire` on the broker's hot paths, in microseconds a call; starts no broker.

    python -m benchmarks.micro

The best of several rounds counts, so that other work on the machine disturbs little. Rows are named
in the `# Hot path:` comments of the code they watch.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from pulsar_py.proto.PulsarApi_pb2 import BaseCommand, CommandSend, MessageMetadata
from pulsar_py.wire.commands import MessageEncoder, SendReceiptEncoder, read_command
from pulsar_py.wire.entry_summary import sticky_key, summarize_entry
from pulsar_py.wire.framing import FrameDecoder, encode_message, max_frame_bytes
from pulsar_py.wire.payload import encode_entry, verify_checksum

CALLS = 50_000
ROUNDS = 7
CHUNK_BYTES = 256 * 1024
MAX_MESSAGE_SIZE = 5 * 1024 * 1024


def best_microseconds(run: Callable[[], object], calls: int = CALLS) -> float:
    """The best of some rounds."""
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for _ in range(calls):
            run()
        best = min(best, time.perf_counter() - start)
    return best / calls * 1e6


def framing_microseconds(frame: bytes, frames: int) -> float:
    """One frame of a long stream that comes in large chunks."""
    stream = frame * frames
    chunks = [stream[i : i + CHUNK_BYTES] for i in range(0, len(stream), CHUNK_BYTES)]

    def run() -> None:
        decoder = FrameDecoder(max_frame_bytes(MAX_MESSAGE_SIZE))
        for chunk in chunks:
            decoder.decode(chunk)

    return best_microseconds(run, calls=1) / frames


def main() -> None:
    """Print the table."""
    send = BaseCommand(type=BaseCommand.SEND, send=CommandSend(producer_id=1, sequence_id=123_456))
    entry = encode_entry(
        MessageMetadata(
            producer_name="standalone-1-23",
            sequence_id=123_456,
            publish_time=1_700_000_000_000,
            partition_key="key-1",
        ),
        bytes(1024),
    )
    frame = encode_message(send, entry, max_message_size=MAX_MESSAGE_SIZE)
    small = encode_message(send, entry[:100], max_message_size=MAX_MESSAGE_SIZE)
    large = encode_message(send, bytes(MAX_MESSAGE_SIZE), max_message_size=MAX_MESSAGE_SIZE)
    command = send.SerializeToString()
    summary = summarize_entry(entry)
    receipts = SendReceiptEncoder()
    messages = MessageEncoder(3)
    rows = {
        "framing, 100 B": framing_microseconds(small, 20_000),
        "framing, 1 KB": framing_microseconds(frame, 20_000),
        "framing, 5 MB": framing_microseconds(large, 8),
        "read_command, SEND": best_microseconds(lambda: read_command(command)),
        "verify_checksum, 1 KB": best_microseconds(lambda: verify_checksum(entry)),
        "SEND_RECEIPT": best_microseconds(lambda: receipts.encode(1, 123_456, 7, 123_456)),
        "MESSAGE": best_microseconds(lambda: messages.encode(7, 123_456, 1024)),
        "summarize_entry": best_microseconds(lambda: summarize_entry(entry)),
        "sticky_key": best_microseconds(lambda: sticky_key(summary)),
    }
    for name, figure in rows.items():
        print(f"{name:24}{figure:10.3f} us")


if __name__ == "__main__":
    main()
