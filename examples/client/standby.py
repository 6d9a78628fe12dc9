"""Failover: one consumer works, another stands by, and both are told.

.venv/bin/python examples/client/standby.py [URL]
"""

import asyncio
import sys

import pulsar_py


class Announcer(pulsar_py.ConsumerEventListener):
    """Says who works."""

    def became_active(self, consumer: pulsar_py.Consumer, partition_index: int) -> None:
        """The consumer gets the messages from now on."""
        print(consumer.consumer_name(), "works", partition_index)


async def main(url: str) -> None:
    """Order is kept: at any time one consumer gets everything."""
    async with pulsar_py.Client(url) as client:
        consumers = [
            await client.subscribe(
                "ledger",
                "bookkeeping",
                consumer_type=pulsar_py.ConsumerType.Failover,
                consumer_name=name,
                consumer_event_listener=Announcer(),
            )
            for name in ("a", "b")
        ]
        producer = await client.create_producer("ledger")
        await producer.send(b"entry 1")
        message = await consumers[0].receive(timeout_millis=10_000)
        await consumers[0].acknowledge(message)
        await consumers[0].close()
        await producer.send(b"entry 2")
        message = await consumers[1].receive(timeout_millis=10_000)
        await consumers[1].acknowledge(message)
        print(message.data().decode(), "went to", consumers[1].consumer_name())


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "pulsar://localhost:6650"))
