"""What an application has encrypted itself goes out as it is, with its keys."""

from __future__ import annotations

import pytest

from pulsar_py.client.security.encrypted_elsewhere import (
    EncryptedPayload,
    PassingEncryptor,
    WrappedKeys,
)
from pulsar_py.client.security.message_crypto import EncryptionKey
from pulsar_py.client.shared.enums import CompressionType
from pulsar_py.common.errors import CryptoError
from pulsar_py.proto.PulsarApi_pb2 import MessageMetadata

KEYS = WrappedKeys(
    [EncryptionKey("mine", b"wrapped", {"of": "me"}), EncryptionKey("yours", b"other", {})]
)


def metadata() -> MessageMetadata:
    return MessageMetadata(producer_name="p", sequence_id=1, publish_time=2)


def test_keys_and_parameters_stand_in_metadata_and_bytes_stay() -> None:
    data = metadata()
    payload = EncryptedPayload.of(
        b"ciphertext", param=b"iv", compression=CompressionType.ZSTD, uncompressed_size=99
    )
    encryptor = PassingEncryptor(KEYS)
    for _ in range(2):  # metadata that is used again has the keys once
        assert encryptor.encrypt(data, payload) == b"ciphertext"
    found = {each.key: (each.value, [*each.metadata]) for each in data.encryption_keys}
    assert found["mine"][0] == b"wrapped"
    assert [(pair.key, pair.value) for pair in found["mine"][1]] == [("of", "me")]
    assert found["yours"] == (b"other", [])
    assert (data.encryption_param, data.uncompressed_size) == (b"iv", 99)
    assert data.compression == CompressionType.ZSTD.value


def test_without_compression_metadata_says_nothing_of_it() -> None:
    data = metadata()
    PassingEncryptor(KEYS).encrypt(data, EncryptedPayload.of(b"c", param=b"iv"))
    assert not data.HasField("compression")
    assert not data.HasField("uncompressed_size")


async def test_what_has_no_iv_is_refused_and_no_key_is_made() -> None:
    encryptor = PassingEncryptor(KEYS)
    assert not encryptor.rotation_due(1e9)
    await encryptor.rotate(0.0)
    with pytest.raises(CryptoError, match="without an IV"):
        encryptor.encrypt(metadata(), b"plain")
