"""Be the only one who writes to a topic, and take over when that one is gone.

.venv/bin/python examples/client/one_writer.py [URL]
"""

import asyncio
import sys

import pulsar_py


async def main(url: str) -> None:
    """A second exclusive producer is refused; one that waits gets its turn."""
    modes = pulsar_py.ProducerAccessMode
    async with pulsar_py.Client(url) as client:
        leader = await client.create_producer("state", access_mode=modes.Exclusive)
        try:
            await client.create_producer("state", access_mode=modes.Exclusive)
        except pulsar_py.ProducerFencedError as error:
            print("refused:", type(error).__name__)
        waiting = asyncio.create_task(
            client.create_producer("state", access_mode=modes.WaitForExclusive)
        )
        await asyncio.sleep(0.2)
        print("has its turn:", waiting.done())
        await leader.close()
        successor = await waiting
        await successor.send(b"mine now")
        print("has its turn:", waiting.done())


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "pulsar://localhost:6650"))
