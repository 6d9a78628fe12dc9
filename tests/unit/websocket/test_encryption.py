"""A client that encrypts by itself is understood, and others can read what it sent."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import zlib
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from pulsar_py.client.security.crypto_keys import CryptoKeyReader
from pulsar_py.client.security.key_wrapping import unwrap_key, wrap_key
from pulsar_py.client.shared.enums import CompressionType, InitialPosition
from pulsar_py.common.errors import CryptoError, InvalidConfigurationError, ServiceMetadataError
from pulsar_py.websocket.encryption import encrypted_payload, wrapped_keys
from pulsar_py.websocket.frames import BAD_PAYLOAD, FrameError, outgoing_frame
from tests.unit.websocket.dialogs import Served, said, served
from tests.websocket_client import WebSocketClient

TEXT = b"only for two" * 20
PRIVATE = rsa.generate_private_key(public_exponent=65537, key_size=2048)
DATA_KEY, IV = bytes(range(32)), bytes(range(12))


def base64_of(data: bytes) -> str:
    return base64.b64encode(data).decode()


def parameter(value: object) -> str:
    return base64_of(json.dumps(value).encode())


def frame(**fields: Any) -> str:  # Any: JSON
    return json.dumps({"payload": base64_of(b"c"), "encryptionParam": base64_of(IV), **fields})


# --- parameters --------------------------------------------------------------------------------


def test_keys_have_names_values_and_metadata() -> None:
    keys = wrapped_keys(parameter({"a": {"keyValue": "AQI=", "metadata": {"x": "y"}},
                                   "b": {"keyValue": "Aw=="}})).keys  # fmt: skip
    assert [(each.key, each.value, each.metadata) for each in keys] == [
        ("a", b"\1\2", {"x": "y"}),
        ("b", b"\3", {}),
    ]


@pytest.mark.parametrize(
    "text", ["", "k", "a,b", '{"k": {}}', base64_of(b"no json"), parameter([1]), parameter({})]
)
def test_other_texts_name_keys_that_the_broker_has_not(text: str) -> None:
    with pytest.raises(CryptoError, match="encryptionKeys"):
        wrapped_keys(text)


def test_the_padding_may_be_missing() -> None:
    text = parameter({"key": {"keyValue": "YQ=="}})
    assert text.endswith("=")
    assert wrapped_keys(f" {text.rstrip('=')} ").keys[0].value == b"a"


@pytest.mark.parametrize(
    "keys", [{"k": {}}, {"k": None}, {"": {"keyValue": "YQ=="}}, {"k": {"keyValue": ""}}]
)
def test_a_key_without_name_or_value_is_refused(keys: Mapping[str, Any]) -> None:
    with pytest.raises(InvalidConfigurationError, match="encryptionKeys"):
        wrapped_keys(parameter(keys))


# --- frames ------------------------------------------------------------------------------------


def test_a_frame_says_how_its_payload_was_made() -> None:
    plain = encrypted_payload(outgoing_frame(frame()))
    assert (plain, plain.param, plain.compression) == (b"c", IV, CompressionType.NONE)
    short = encrypted_payload(
        outgoing_frame(frame(compressionType="ZLIB", uncompressedMessageSize=5))
    )
    assert (short.compression, short.uncompressed_size) == (CompressionType.ZLib, 5)


@pytest.mark.parametrize(
    "fields",
    [
        {"encryptionParam": "*"},
        {"compressionType": "LZ4"},
        {"uncompressedMessageSize": 5},
        {"compressionType": "lz4", "uncompressedMessageSize": 5},
    ],
)
def test_what_a_frame_lacks_is_said_with_its_context(fields: Mapping[str, Any]) -> None:
    with pytest.raises(FrameError) as raised:
        encrypted_payload(outgoing_frame(frame(context="c", **fields)))
    assert (raised.value.number, raised.value.context) == (BAD_PAYLOAD, "c")


# --- with a broker -----------------------------------------------------------------------------


class Keys(CryptoKeyReader):
    """The private key, as a reader of messages has it."""

    def get_private_key(self, key_name: str, metadata: Mapping[str, str]) -> bytes:
        assert (key_name, metadata) == ("mine", {"of": "me"})
        return PRIVATE.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )


async def producer_of(broker: Served, more: str = "") -> WebSocketClient:
    wrapped = base64_of(wrap_key(PRIVATE.public_key(), DATA_KEY))
    keys = {"mine": {"keyValue": wrapped, "metadata": {"of": "me"}}}
    path = "/v2/producer/persistent/public/default/t"
    return await broker.open(f"{path}?encryptionKeys={quote(parameter(keys), safe='')}{more}")


def encrypted(data: bytes) -> tuple[str, str]:
    """Ciphertext and IV, as frames have them."""
    iv = os.urandom(12)
    return base64_of(AESGCM(DATA_KEY).encrypt(iv, data, None)), base64_of(iv)


async def test_binary_clients_read_what_a_websocket_has_encrypted() -> None:
    async with served() as broker:
        # What would have the broker batch or compress is ignored.
        producer = await producer_of(broker, "&batchingEnabled=true&compressionType=NONE")
        consumer = await broker.client.subscribe(
            "t", "s", crypto_key_reader=Keys(), initial_position=InitialPosition.Earliest
        )
        for fields in ({}, {"compressionType": "ZLIB", "uncompressedMessageSize": len(TEXT)}):
            payload, param = encrypted(zlib.compress(TEXT) if fields else TEXT)
            producer.send(
                json.dumps({"payload": payload, "encryptionParam": param, "key": "k", **fields})
            )
            assert (await said(producer))["result"] == "ok"
            message = await consumer.receive(20_000)
            assert (message.data(), message.key()) == (TEXT, "k")


async def test_a_websocket_decrypts_by_what_it_is_told() -> None:
    async with served() as broker:
        producer = await producer_of(broker)
        path = "/v2/consumer/persistent/public/default/t/s"
        consumer = await broker.open(f"{path}?cryptoFailureAction=CONSUME")
        payload, param = encrypted(zlib.compress(TEXT))
        compression = {"compressionType": "ZLIB", "uncompressedMessageSize": len(TEXT)}
        producer.send(json.dumps({"payload": payload, "encryptionParam": param, **compression}))
        assert (await said(producer))["result"] == "ok"
        message = await said(consumer)
        context = message["encryptionContext"]
        key = context["keys"]["mine"]
        assert key["metadata"] == {"of": "me"}
        assert context["uncompressedMessageSize"] == len(TEXT)
        assert context["compressionType"] == "ZLIB"
        data_key = unwrap_key(PRIVATE, base64.b64decode(key["keyValue"]))
        cipher = AESGCM(data_key)
        iv = base64.b64decode(context["param"])
        plain = cipher.decrypt(iv, base64.b64decode(message["payload"]), None)
        assert zlib.decompress(plain) == TEXT


async def test_it_may_publish_where_encryption_is_required() -> None:
    async with served(encryptionRequireOnProducer=True) as broker:
        producer = await producer_of(broker)
        producer.send(frame())
        assert (await said(producer))["result"] == "ok"
        producer.send(json.dumps({"payload": "YQ==", "encryptionParam": "*"}))
        assert (await said(producer))["result"] == f"send-error:{BAD_PAYLOAD}"


async def test_who_does_not_encrypt_is_refused_at_once_where_it_is_required() -> None:
    async with served(encryptionRequireOnProducer=True) as broker:
        # Clients go on trying for the time of an operation, 30 s, what may succeed by waiting.
        async with asyncio.timeout(20):
            client = await broker.open("/v2/producer/persistent/public/default/t")
            assert client.status == 500
            assert b"Encryption is required in persistent://public/default/t" in client.body
            with pytest.raises(ServiceMetadataError, match="Encryption is required in"):
                await broker.client.create_producer("persistent://public/default/t")
