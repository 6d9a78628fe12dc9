"""One consumer for several topics, or for all whose names match a pattern.

.venv/bin/python examples/client/many_topics.py [URL]
"""

import asyncio
import re
import sys

import pulsar_py


async def main(url: str) -> None:
    """Topics that appear later and match are noticed as well."""
    async with pulsar_py.Client(url) as client:
        several = await client.subscribe(["sensor-a", "sensor-b"], "several")
        pattern = re.compile("persistent://public/default/sensor-.*")
        matching = await client.subscribe(
            pattern, "matching", initial_position=pulsar_py.InitialPosition.Earliest
        )
        for name in ("sensor-a", "sensor-b", "sensor-new"):
            async with await client.create_producer(name) as producer:
                await producer.send(b"reading of " + name.encode())
        for consumer, count in ((several, 2), (matching, 3)):
            names = set()
            for _ in range(count):
                message = await consumer.receive(timeout_millis=30_000)
                names.add(message.topic_name().rpartition("/")[2])
                await consumer.acknowledge(message)
            print(sorted(names))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "pulsar://localhost:6650"))
