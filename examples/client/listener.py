"""A listener: a function that is called with each message, several at a time.

.venv/bin/python examples/client/listener.py [URL]
"""

import asyncio
import sys

import pulsar_py


async def main(url: str) -> None:
    """The function may be a coroutine function; an error in it is a negative acknowledgement."""
    done = asyncio.Event()

    async def on_message(consumer: pulsar_py.Consumer, message: pulsar_py.Message) -> None:
        await asyncio.sleep(0.01)  # as if it did something
        await consumer.acknowledge(message)
        if message.data() == b"19":
            done.set()

    async with pulsar_py.Client(url) as client:
        await client.subscribe(
            "events",
            "listening",
            consumer_type=pulsar_py.ConsumerType.Shared,
            message_listener=on_message,
            listener_concurrency=5,
        )
        producer = await client.create_producer("events")
        for number in range(20):
            await producer.send(b"%d" % number)
        await asyncio.wait_for(done.wait(), 10)
        print("listened to all of them")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "pulsar://localhost:6650"))
