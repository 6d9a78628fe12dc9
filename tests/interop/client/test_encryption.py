"""End-to-end encryption between both clients.

EC keys, which the official one lacks, are compared with Java's bytes in the unit tests.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from pathlib import Path

import pulsar
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

import pulsar_py
from tests.interop.client.sides import (
    TIMEOUT,
    Official,
    Ours,
    Side,
    data_of,
    nothing_comes,
)


class Keys:
    """Key files, and each client's reader of them."""

    def __init__(
        self, directory: Path, key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey
    ) -> None:
        self.paths = str(directory / "public.pem"), str(directory / "private.pem")
        self.public_pem = key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        Path(self.paths[0]).write_bytes(self.public_pem)
        Path(self.paths[1]).write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )

    def reader(self, side: Side) -> pulsar.CryptoKeyReader | pulsar_py.CryptoKeyReader:
        return side.module.CryptoKeyReader(*self.paths)


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    return Keys(tmp_path_factory.mktemp("keys"), rsa.generate_private_key(65537, 2048))


@pytest.fixture(scope="module")
def other_keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    return Keys(tmp_path_factory.mktemp("keys"), rsa.generate_private_key(65537, 4096))


@pytest.mark.parametrize("batching", [False, True])
@pytest.mark.parametrize("compression", ["NONE", "LZ4", "ZSTD"])
async def test_encrypted_messages_are_read(  # noqa: PLR0917 - fixtures
    writer: Side, reader: Side, topic: str, keys: Keys, compression: str, batching: bool
) -> None:
    consumer = await reader.consumer(topic, crypto_key_reader=keys.reader(reader))
    expected = [b"secret" * 1000 * i for i in range(5)]

    await writer.publish(
        topic,
        [{"content": each, "partition_key": "k"} for each in expected],
        encryption_key="mine",
        crypto_key_reader=keys.reader(writer),
        compression_type=f"CompressionType.{compression}",
        batching_enabled=batching,
    )

    assert await data_of(consumer, 5) == expected


async def test_encrypted_chunks_are_put_together(
    writer: Side, reader: Side, topic: str, keys: Keys
) -> None:
    consumer = await reader.consumer(topic, crypto_key_reader=keys.reader(reader))
    large = random.Random(1).randbytes(11_000_000)

    await writer.publish(
        topic,
        [large],
        encryption_key="mine",
        crypto_key_reader=keys.reader(writer),
        chunking_enabled=True,
    )

    assert await data_of(consumer, 1) == [large]


async def test_the_other_client_s_reader_decrypts(
    writer: Side, reader: Side, topic: str, keys: Keys
) -> None:
    await writer.publish(
        topic, [b"secret"], encryption_key="mine", crypto_key_reader=keys.reader(writer)
    )

    start = reader.module.MessageId.earliest
    it = await reader.reader(topic, start, crypto_key_reader=keys.reader(reader))

    assert (await it.read_next(TIMEOUT)).data() == b"secret"


@pytest.mark.parametrize("has_reader", [False, True])
async def test_without_the_key_nothing_is_delivered(  # noqa: PLR0917 - fixtures
    writer: Side, reader: Side, topic: str, keys: Keys, other_keys: Keys, has_reader: bool
) -> None:
    options = {"crypto_key_reader": other_keys.reader(reader)} if has_reader else {}
    consumer = await reader.consumer(topic, **options)

    await writer.publish(
        topic, [b"secret"], encryption_key="mine", crypto_key_reader=keys.reader(writer)
    )

    assert await nothing_comes(consumer)


async def test_what_can_not_be_decrypted_can_be_dropped(
    writer: Side, reader: Side, topic: str, keys: Keys
) -> None:
    action = "ConsumerCryptoFailureAction.DISCARD"
    consumer = await reader.consumer(topic, crypto_failure_action=action)
    await writer.publish(
        topic, [b"secret"], encryption_key="mine", crypto_key_reader=keys.reader(writer)
    )
    await writer.publish(topic, [b"plain"])

    assert await data_of(consumer, 1) == [b"plain"]
    await asyncio.sleep(0.5)
    await consumer.close()
    consumer = await reader.consumer(topic, crypto_key_reader=keys.reader(reader))
    assert await nothing_comes(consumer)


async def test_what_can_not_be_decrypted_can_be_delivered_as_it_is(
    writer: Side, ours: Ours, official: Official, topic: str, keys: Keys
) -> None:
    consumers = [
        await side.consumer(
            topic, side.name, crypto_failure_action="ConsumerCryptoFailureAction.CONSUME"
        )
        for side in (ours, official)
    ]

    await writer.publish(
        topic,
        [b"secret-%d" % i * 100 for i in range(2)],
        encryption_key="mine",
        crypto_key_reader=keys.reader(writer),
        compression_type="CompressionType.ZLib",
        batching_enabled=True,
    )

    mine, theirs = [await consumer.receive(TIMEOUT) for consumer in consumers]
    assert mine.data() == theirs.data()
    assert mine.data() != b"secret-0" * 100
    context, expected = mine.encryption_context(), theirs.encryption_context()
    for name in (
        "param",
        "algorithm",
        "uncompressed_message_size",
        "batch_size",
        "is_decryption_failed",
    ):
        assert getattr(context, name)() == getattr(expected, name)(), name
    assert context.compression_type().name == expected.compression_type().name
    assert context.keys()[0].key == "mine"
    assert context.keys()[0].value == expected.keys()[0].value


async def test_several_keys_let_several_readers_in(
    ours: Ours, official: Official, topic: str, keys: Keys, other_keys: Keys
) -> None:
    class Both(pulsar_py.CryptoKeyReader):
        async def get_public_key(
            self, key_name: str, metadata: Mapping[str, str]
        ) -> pulsar_py.EncryptionKeyInfo:
            of = {"mine": keys, "yours": other_keys}[key_name]
            return pulsar_py.EncryptionKeyInfo(of.public_pem, {"of": key_name})

    consumers = [
        await official.consumer(topic, "a", crypto_key_reader=keys.reader(official)),
        await official.consumer(topic, "b", crypto_key_reader=other_keys.reader(official)),
        await ours.consumer(topic, "c", crypto_key_reader=other_keys.reader(ours)),
    ]

    await ours.publish(
        topic, [b"for both"], encryption_key=["mine", "yours"], crypto_key_reader=Both()
    )

    for consumer in consumers:
        assert await data_of(consumer, 1) == [b"for both"]


async def test_rotated_data_keys_are_followed(
    ours: Ours, official: Official, topic: str, keys: Keys
) -> None:
    consumer = await official.consumer(topic, crypto_key_reader=keys.reader(official))
    options = {"encryption_key": "mine", "crypto_key_reader": keys.reader(ours)}

    for number in range(3):  # each producer begins with a data key of its own
        await ours.publish(topic, [b"%d" % number], **options)

    assert await data_of(consumer, 3) == [b"0", b"1", b"2"]


async def test_ec_keys_work_among_ourselves(ours: Ours, topic: str, tmp_path: Path) -> None:
    keys = Keys(tmp_path, ec.generate_private_key(ec.SECP256R1()))
    consumer = await ours.consumer(topic, crypto_key_reader=keys.reader(ours))

    await ours.publish(
        topic, [b"secret"], encryption_key="mine", crypto_key_reader=keys.reader(ours)
    )

    assert await data_of(consumer, 1) == [b"secret"]


async def test_a_key_that_is_missing_fails_the_producer(ours: Ours, topic: str) -> None:
    with pytest.raises(pulsar_py.CryptoError, match="mine"):
        await ours.producer(
            topic,
            encryption_key="mine",
            crypto_key_reader=pulsar_py.CryptoKeyReader("/nowhere", "/nowhere"),
        )
