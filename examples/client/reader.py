"""Read a topic from any position, without a subscription.

.venv/bin/python examples/client/reader.py [URL]
"""

import asyncio
import sys

import pulsar_py


async def main(url: str) -> None:
    """From the beginning to the end, then again from the middle."""
    async with pulsar_py.Client(url) as client:
        producer = await client.create_producer("journal")
        ids = [await producer.send(b"line %d" % number) for number in range(5)]
        reader = await client.create_reader("journal", pulsar_py.MessageId.earliest)
        while await reader.has_message_available():
            print((await reader.read_next()).data().decode())
        await reader.seek(ids[2])
        print("after a seek:", (await reader.read_next()).data().decode())


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "pulsar://localhost:6650"))
