"""A broker inside your own event loop: in memory, on free ports, gone at the end of the block.

.venv/bin/python examples/embedded_broker.py
"""

import asyncio

import pulsar

import pulsar_py


def order_and_receive(service_url: str) -> str:
    """What the official client does; it blocks, so it runs in a thread."""
    client = pulsar.Client(service_url)
    consumer = client.subscribe("orders", "billing")
    client.create_producer("orders").send(b"one coffee")
    message = consumer.receive(timeout_millis=10_000)
    consumer.acknowledge(message)
    client.close()
    return message.data().decode()


async def main() -> None:
    """Start a broker, use it, stop it."""
    async with pulsar_py.Broker() as broker:  # data_dir="..." stores everything there
        print(await asyncio.to_thread(order_and_receive, broker.service_url))


asyncio.run(main())
