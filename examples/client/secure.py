"""Publish and receive over TLS with a token, as `pulsar-py secure init` makes them.

.venv/bin/python examples/client/secure.py [URL [DIRECTORY]]
"""

import asyncio
import sys
from pathlib import Path

import pulsar_py


async def main(url: str, directory: str) -> None:
    """The broker has to be one that the authority names; the token says who the client is."""
    async with pulsar_py.Client(
        url,
        pulsar_py.AuthenticationToken(Path(directory, "client.jwt").read_text),
        tls_trust_certs_file_path=str(Path(directory, "ca.pem")),
        tls_validate_hostname=True,
    ) as client:
        consumer = await client.subscribe("secrets", "reader")
        producer = await client.create_producer("secrets")
        await producer.send(b"for your eyes only")
        print((await consumer.receive()).data().decode())


if __name__ == "__main__":
    arguments = dict(enumerate(sys.argv))
    asyncio.run(main(arguments.get(1, "pulsar+ssl://localhost:6651"), arguments.get(2, "secure")))
