"""What goes wrong has a class of its own, and a message that names topic and values.

.venv/bin/python examples/client/errors.py [URL]
"""

import asyncio
import sys

import pulsar_py


async def main(url: str) -> None:
    """All errors are `PulsarError`; what a broker answered is `ServiceError`."""
    async with pulsar_py.Client(url) as client:
        await client.subscribe("mine", "only-one")
        try:
            await client.subscribe("mine", "only-one")
        except pulsar_py.ConsumerBusyError as error:
            print("ConsumerBusyError:", "mine" in str(error))
        producer = await client.create_producer("mine")
        try:
            await producer.send(bytes(6 << 20))
        except pulsar_py.MessageTooBigError as error:
            print("MessageTooBigError:", "mine" in str(error))
        try:
            await client.create_producer("mine", batching_max_mesages=5)
        except pulsar_py.InvalidConfigurationError as error:
            print("InvalidConfigurationError:", error)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "pulsar://localhost:6650"))
