"""End-to-end encryption of the official client passes through untouched."""

from __future__ import annotations

from pathlib import Path

import pulsar
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.interop.conftest import Address, new_client
from tests.interop.test_produce_consume import TIMEOUT


@pytest.fixture(scope="module")
def key_reader(tmp_path_factory: pytest.TempPathFactory) -> pulsar.CryptoKeyReader:
    directory: Path = tmp_path_factory.mktemp("keys")
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    (directory / "private").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    (directory / "public").write_bytes(
        key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    )
    return pulsar.CryptoKeyReader(str(directory / "public"), str(directory / "private"))


@pytest.mark.parametrize("batching", [False, True])
def test_encrypted_messages_arrive(
    client: pulsar.Client, topic: str, key_reader: pulsar.CryptoKeyReader, batching: bool
) -> None:
    consumer = client.subscribe(topic, "sub", crypto_key_reader=key_reader)
    producer = client.create_producer(
        topic,
        encryption_key="mine",
        crypto_key_reader=key_reader,
        batching_enabled=batching,
        compression_type=pulsar.CompressionType.LZ4,
    )

    for index in range(10):
        producer.send_async(f"secret-{index}".encode(), None)
    producer.flush()

    received = [consumer.receive(TIMEOUT).data() for _ in range(10)]
    assert received == [f"secret-{index}".encode() for index in range(10)]


def test_consumer_without_the_key_gets_nothing(
    address: Address, topic: str, key_reader: pulsar.CryptoKeyReader
) -> None:
    client = new_client(address.service_url)
    consumer = client.subscribe(topic, "sub")
    producer = client.create_producer(topic, encryption_key="mine", crypto_key_reader=key_reader)

    producer.send(b"secret")

    with pytest.raises(pulsar.Timeout):
        consumer.receive(500)
    client.close()
