"""End-to-end encryption: the broker never sees what is in a message.

.venv/bin/python examples/client/encryption.py [URL]
"""

import asyncio
import sys
import tempfile
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

import pulsar_py


def write_keys(directory: Path) -> tuple[str, str]:
    """A new pair of keys; returns the paths of both."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    (directory / "public.pem").write_bytes(public)
    (directory / "private.pem").write_bytes(private)
    return str(directory / "public.pem"), str(directory / "private.pem")


async def main(url: str) -> None:
    """A key pair in two files; the producer needs the public one, the consumer the private one."""
    with tempfile.TemporaryDirectory() as name:
        public, private = write_keys(Path(name))
        async with pulsar_py.Client(url) as client:
            consumer = await client.subscribe(
                "secrets", "friend", crypto_key_reader=pulsar_py.CryptoKeyReader("", private)
            )
            producer = await client.create_producer(
                "secrets",
                encryption_key="our-key",
                crypto_key_reader=pulsar_py.CryptoKeyReader(public, ""),
            )
            await producer.send(b"the treasure is under the tree")
            message = await consumer.receive(timeout_millis=10_000)
            await consumer.acknowledge(message)
            print(message.data().decode())


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "pulsar://localhost:6650"))
