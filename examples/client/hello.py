"""Publish messages and receive them.

.venv/bin/python examples/client/hello.py [URL]
"""

import asyncio
import sys

import pulsar_py


async def main(url: str) -> None:
    """Subscribe first: a new subscription begins with what is published from then on."""
    async with pulsar_py.Client(url) as client:
        consumer = await client.subscribe("greetings", "reader")
        async with await client.create_producer("greetings") as producer:
            await producer.send(b"hello")
            await producer.send(b"goodbye", properties={"from": "me"})
        async for message in consumer:
            print(message.data().decode(), message.properties())
            await consumer.acknowledge(message)
            if message.data() == b"goodbye":
                break


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "pulsar://localhost:6650"))
