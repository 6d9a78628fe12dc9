"""A worker that ends on SIGTERM: after the message at hand, which is acknowledged.

.venv/bin/python examples/client/graceful_worker.py [URL]
"""

import asyncio
import signal
import sys

import pulsar_py


async def work(consumer: pulsar_py.AnyConsumer) -> None:
    """The loop ends by itself once the consumer drains."""
    async for message in consumer:
        if message.data() == b"2":
            signal.raise_signal(signal.SIGTERM)  # as a service manager would send it
        await asyncio.sleep(0.1)  # as if it did something
        await consumer.acknowledge(message)
        print("done:", message.data().decode())


async def main(url: str) -> None:
    """With receipts an acknowledged message does not come again, whoever is killed afterwards."""
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    async with pulsar_py.Client(url) as client:
        consumer = await client.subscribe(
            "tasks",
            "workers",
            consumer_type=pulsar_py.ConsumerType.Shared,
            ack_receipt_enabled=True,
        )
        async with await client.create_producer("tasks") as producer:
            for number in range(10):
                await producer.send(b"%d" % number)
        worker = asyncio.create_task(work(consumer))
        stopped = asyncio.create_task(stopping.wait())
        await asyncio.wait((worker, stopped), return_when=asyncio.FIRST_COMPLETED)
        await consumer.drain()
        await worker  # which raises what ended it
    print("the others go to another worker")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "pulsar://localhost:6650"))
