"""Keys: messages of one key stay in order, though many consumers share the work.

.venv/bin/python examples/client/keys.py [URL]
"""

import asyncio
import sys

import pulsar_py


async def work(consumer: pulsar_py.AnyConsumer, index: int, homes: dict[str, set[int]]) -> None:
    """Take messages until none comes for a second."""
    try:
        while True:
            message = await consumer.receive(timeout_millis=1000)
            homes.setdefault(message.partition_key(), set()).add(index)
            await consumer.acknowledge(message)
    except TimeoutError:
        pass


async def main(url: str) -> None:
    """Two workers share a subscription; each key is at home with one of them."""
    async with pulsar_py.Client(url) as client:
        workers = [
            await client.subscribe(
                "orders", "billing", consumer_type=pulsar_py.ConsumerType.KeyShared
            )
            for _ in range(2)
        ]
        # Batches by key, so that a batch has one home as well.
        producer = await client.create_producer(
            "orders",
            batching_enabled=True,
            batching_type=pulsar_py.BatchingType.KeyBased,
        )
        for number in range(100):
            producer.send_nowait(b"%d" % number, key=f"customer-{number % 7}")
        await producer.flush()
        homes: dict[str, set[int]] = {}
        async with asyncio.TaskGroup() as group:
            for index, worker in enumerate(workers):
                group.create_task(work(worker, index, homes))
        print(sorted(homes), "have one home each:", all(len(each) == 1 for each in homes.values()))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "pulsar://localhost:6650"))
