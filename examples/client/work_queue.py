"""A work queue: workers share it, what fails comes again, what always fails is put aside.

.venv/bin/python examples/client/work_queue.py [URL]
"""

import asyncio
import sys

import pulsar_py


async def work(consumer: pulsar_py.AnyConsumer) -> None:
    """Refuse what can't be done; it is delivered again, later."""
    async for message in consumer:
        if message.data() == b"bad":
            print("attempt", message.redelivery_count() + 1, "failed")
            consumer.negative_acknowledge(message)
        else:
            await consumer.acknowledge(message)


async def main(url: str) -> None:
    """After two redeliveries a message goes to the dead-letter topic."""
    async with pulsar_py.Client(url) as client:
        given_up = await client.subscribe("jobs-workers-DLQ", "inspection")
        consumer = await client.subscribe(
            "jobs",
            "workers",
            consumer_type=pulsar_py.ConsumerType.Shared,
            negative_ack_redelivery_delay_ms=100,
            dead_letter_policy=pulsar_py.ConsumerDeadLetterPolicy(max_redeliver_count=2),
        )
        producer = await client.create_producer("jobs")
        for job in (b"good", b"bad"):
            await producer.send(job)
        worker = asyncio.create_task(work(consumer))
        message = await given_up.receive(timeout_millis=10_000)
        print("given up:", message.data().decode(), "of", message.properties()["REAL_TOPIC"])
        await given_up.acknowledge(message)
        worker.cancel()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "pulsar://localhost:6650"))
