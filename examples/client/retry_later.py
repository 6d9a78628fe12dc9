"""Put a message off: it comes again after a delay that the application chooses.

.venv/bin/python examples/client/retry_later.py [URL]
"""

import asyncio
import sys

import pulsar_py


async def main(url: str) -> None:
    """The message goes to a retry topic that the consumer reads as well."""
    async with pulsar_py.Client(url) as client:
        consumer = await client.subscribe(
            "payments",
            "bank",
            consumer_type=pulsar_py.ConsumerType.Shared,
            retry_enable=True,
        )
        producer = await client.create_producer("payments")
        await producer.send(b"pay the rent")
        message = await consumer.receive(timeout_millis=10_000)
        await consumer.reconsume_later(message, delay_millis=500)
        message = await consumer.receive(timeout_millis=10_000)
        print(message.data().decode(), "again, retry", message.properties()["RECONSUMETIMES"])
        await consumer.acknowledge(message)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "pulsar://localhost:6650"))
