"""Publish now, deliver later.

.venv/bin/python examples/client/delayed.py [URL]
"""

import asyncio
import sys
import time
from datetime import timedelta

import pulsar_py


async def main(url: str) -> None:
    """Delays are kept on Shared and Key_Shared subscriptions."""
    async with pulsar_py.Client(url) as client:
        consumer = await client.subscribe(
            "reminders", "me", consumer_type=pulsar_py.ConsumerType.Shared
        )
        producer = await client.create_producer("reminders")
        await producer.send(b"wake up", deliver_after=timedelta(seconds=3))
        begun = time.monotonic()
        message = await consumer.receive(timeout_millis=10_000)
        await consumer.acknowledge(message)
        print(message.data().decode(), "after", round(time.monotonic() - begun), "seconds")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "pulsar://localhost:6650"))
