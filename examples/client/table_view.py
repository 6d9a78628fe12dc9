"""The newest value of each key, kept up to date: a topic as a table.

.venv/bin/python examples/client/table_view.py [URL]
"""

import asyncio
import sys

import pulsar_py


async def main(url: str) -> None:
    """A null value deletes the key."""
    async with pulsar_py.Client(url) as client:
        producer = await client.create_producer("prices")
        await producer.send(b"1.20", key="tea")
        await producer.send(b"1.90", key="coffee")
        await producer.send(b"2.10", key="coffee")
        table = await client.create_table_view("prices")
        print({key: table[key].decode() for key in sorted(table)})
        await producer.send(None, key="tea")
        await table.refresh()
        print("tea" in table, len(table))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "pulsar://localhost:6650"))
