"""What producers and consumers did: rates, latencies, queues.

.venv/bin/python examples/client/figures.py [URL]
"""

import asyncio
import sys

import pulsar_py


async def main(url: str) -> None:
    """The same figures are logged once an interval (`stats_interval_in_seconds`)."""
    async with pulsar_py.Client(url, stats_interval_in_seconds=60) as client:
        consumer = await client.subscribe("measured", "gauge")
        producer = await client.create_producer("measured")
        for _ in range(10):
            await producer.send(b"x" * 100)
            await consumer.acknowledge(await consumer.receive(timeout_millis=10_000))
        print(producer.statistics())
        print(consumer.statistics())


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "pulsar://localhost:6650"))
