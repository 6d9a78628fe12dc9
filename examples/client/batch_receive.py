"""Receive many messages at once, for work that is cheaper in bulk.

.venv/bin/python examples/client/batch_receive.py [URL]
"""

import asyncio
import sys

import pulsar_py


async def main(url: str) -> None:
    """A batch is complete with so many messages, so many bytes, or after so long."""
    async with pulsar_py.Client(url) as client:
        consumer = await client.subscribe(
            "rows",
            "database",
            batch_receive_policy=pulsar_py.ConsumerBatchReceivePolicy(
                max_num_message=100, max_num_bytes=1 << 20, timeout_ms=500
            ),
        )
        producer = await client.create_producer("rows", batching_enabled=True)
        for number in range(250):
            producer.send_nowait(b"row %d" % number)
        await producer.flush()
        rows = 0
        while rows < 250:
            messages = await consumer.batch_receive()
            rows += len(messages)
            await consumer.acknowledge(messages)
        print(rows, "rows in bulk")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "pulsar://localhost:6650"))
