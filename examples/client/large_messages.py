"""Messages larger than the broker takes are sent in chunks and put together again.

.venv/bin/python examples/client/large_messages.py [URL]
"""

import asyncio
import sys

import pulsar_py


async def main(url: str) -> None:
    """One send, one receipt, one message; chunking excludes batching."""
    async with pulsar_py.Client(url) as client:
        consumer = await client.subscribe("films", "viewer", max_pending_chunked_message=2)
        producer = await client.create_producer("films", chunking_enabled=True)
        film = bytes(12 << 20)
        await producer.send(film, properties={"title": "black square"})
        message = await consumer.receive(timeout_millis=30_000)
        await consumer.acknowledge(message)
        print(message.properties()["title"], "has", len(message.data()), "bytes")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "pulsar://localhost:6650"))
