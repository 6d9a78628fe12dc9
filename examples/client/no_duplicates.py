"""Go on after a crash without publishing anything twice.

.venv/bin/python examples/client/no_duplicates.py [URL]
"""

import asyncio
import sys

import pulsar_py


async def main(url: str) -> None:
    """With a name and sequence ids of its own a producer may repeat what it is not sure about.

    The broker drops what it has already, if deduplication is on (`brokerDeduplicationEnabled`, or a
    policy of the namespace or topic).
    """
    lines = [b"first", b"second", b"third"]
    async with pulsar_py.Client(url) as client:
        async with await client.create_producer("log", producer_name="shipper-1") as producer:
            await producer.send(lines[0], sequence_id=0)
            await producer.send(lines[1], sequence_id=1)
        # A new process, which asks how far the last one came:
        async with await client.create_producer("log", producer_name="shipper-1") as producer:
            begin = producer.last_sequence_id() + 1
            for number in range(begin, len(lines)):
                await producer.send(lines[number], sequence_id=number)
            print("went on at line", begin)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "pulsar://localhost:6650"))
