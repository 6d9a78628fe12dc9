"""At start: end with the reason where the broker can't be used, instead of waiting for it.

.venv/bin/python examples/client/fail_at_once.py [URL]
"""

import asyncio
import sys

import pulsar_py

NOBODY = "pulsar://localhost:1"


async def check(url: str) -> None:
    """What waiting can't mend is raised at once; a broker that is away has a second to answer."""
    async with pulsar_py.Client(
        url, operation_timeout_seconds=1, connection_timeout_ms=1000
    ) as client:
        await client.get_topic_partitions("greetings")


async def main(url: str) -> None:
    """The client that works afterwards waits as long as usual, for instance in an outage."""
    for each in (NOBODY, url):
        try:
            await check(each)
        except pulsar_py.PulsarError as error:
            print(f"can't start: {type(error).__name__}: {error}")
            continue
        async with pulsar_py.Client(each) as client:
            producer = await client.create_producer("greetings")
            print("stored:", await producer.send(b"hello"))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "pulsar://localhost:6650"))
