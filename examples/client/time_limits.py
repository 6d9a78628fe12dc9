"""Time limits and cancellation: any await may be given up, and everything works on.

.venv/bin/python examples/client/time_limits.py [URL]
"""

import asyncio
import sys

import pulsar_py


async def main(url: str) -> None:
    """A message that a cancelled `receive` would have got is not lost: the next one gets it."""
    async with pulsar_py.Client(url, operation_timeout_seconds=10) as client:
        consumer = await client.subscribe("slow", "patient")
        try:
            async with asyncio.timeout(0.2):
                await consumer.receive()
        except TimeoutError:
            print("nothing yet")
        producer = await client.create_producer("slow", send_timeout_millis=5000)
        await producer.send(b"here it is")
        message = await consumer.receive(timeout_millis=5000)
        await consumer.acknowledge(message)
        print(message.data().decode())


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "pulsar://localhost:6650"))
