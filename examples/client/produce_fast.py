"""Publish a hundred thousand messages: in batches, without waiting for each one.

.venv/bin/python examples/client/produce_fast.py [URL]
"""

import asyncio
import sys

import pulsar_py


async def main(url: str) -> None:
    """`send_nowait` accepts a message at once; what it returns may be awaited, and need not be."""
    async with (
        pulsar_py.Client(url) as client,
        await client.create_producer(
            "readings",
            batching_enabled=True,
            batching_max_messages=1000,
            batching_max_allowed_size_in_bytes=1 << 20,
            compression_type=pulsar_py.CompressionType.LZ4,
            block_if_queue_full=True,
        ) as producer,
    ):
        for block in range(100):
            for number in range(999):
                producer.send_nowait(b"reading %d of block %d" % (number, block))
            # Wait for one in a thousand: as fast as the broker, and never far ahead of it.
            message_id = await producer.send(b"the last one of block %d" % block)
        await producer.flush()
        print("100000 messages, the last one is", message_id)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "pulsar://localhost:6650"))
