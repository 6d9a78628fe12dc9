"""Values instead of bytes: dataclasses as JSON, with their schema in the registry.

.venv/bin/python examples/client/schemas.py [URL]
"""

import asyncio
import sys
from dataclasses import dataclass

import pulsar_py
from pulsar_py.schema import JsonSchema


@dataclass
class Coffee:
    """What is published."""

    kind: str
    cents: int


async def main(url: str) -> None:
    """The schema goes to the broker with the producer; readers get objects back."""
    schema = JsonSchema(Coffee)
    async with pulsar_py.Client(url) as client:
        consumer = await client.subscribe("coffees", "bar", schema=schema)
        producer = await client.create_producer("coffees", schema=schema)
        await producer.send(Coffee(kind="espresso", cents=190))
        message = await consumer.receive(timeout_millis=10_000)
        await consumer.acknowledge(message)
        print(message.value())


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "pulsar://localhost:6650"))
