"""Sends payloads that the application has compressed and encrypted before the producer got them.

    WrappedKeys         as `crypto_key_reader`: the wrapped data keys that all messages bring along
    EncryptedPayload    as value of a message: bytes, with IV and compression
    PassingEncryptor    in the place of a `MessageEncryptor`: writes both into metadata

So whoever speaks for somebody else, as the WebSocket service does for its clients, hands on what
only the two ends can read. Such a producer must neither batch nor compress nor cut into chunks.

Source: WSSDummyMessageCryptoImpl in Pulsar (PIP-290).
"""

from __future__ import annotations

from collections.abc import Iterable

from pulsar_py.client.security.crypto_keys import CryptoKeyReader
from pulsar_py.client.security.message_crypto import EncryptionKey
from pulsar_py.client.shared.enums import CompressionType
from pulsar_py.common.errors import CryptoError
from pulsar_py.proto import PulsarApi_pb2 as proto
from pulsar_py.proto.PulsarApi_pb2 import EncryptionKeys, MessageMetadata

__all__ = ["EncryptedPayload", "PassingEncryptor", "WrappedKeys"]


class EncryptedPayload(bytes):
    """A ciphertext, with what its reader needs beside a key."""

    param: bytes
    """The IV."""
    compression: CompressionType
    """How it was compressed before it was encrypted."""
    uncompressed_size: int
    """Bytes before compression; 0 without one."""

    @classmethod
    def of(
        cls,
        ciphertext: bytes,
        *,
        param: bytes,
        compression: CompressionType = CompressionType.NONE,
        uncompressed_size: int = 0,
    ) -> EncryptedPayload:
        """A payload of these bytes."""
        payload = cls(ciphertext)
        payload.param = param
        payload.compression = compression
        payload.uncompressed_size = uncompressed_size
        return payload


class WrappedKeys(CryptoKeyReader):
    """Data keys as the application has wrapped them; reads no files, and knows no other key."""

    def __init__(self, keys: Iterable[EncryptionKey]) -> None:
        """`keys` has the data key once for each name; `encryption_key` has the same names."""
        super().__init__()
        self.keys = tuple(keys)


class PassingEncryptor:
    """Encrypts nothing: writes keys and a payload's own parameters into its metadata."""

    def __init__(self, keys: WrappedKeys) -> None:
        self._keys = [
            EncryptionKeys(
                key=each.key,
                value=each.value,
                metadata=[
                    proto.KeyValue(key=name, value=text) for name, text in each.metadata.items()
                ],
            )
            for each in keys.keys
        ]

    async def rotate(self, now: float) -> None:
        """Nothing: the application renews its data key by a producer of its own."""

    def rotation_due(self, now: float) -> bool:
        """Never."""
        del now
        return False

    def encrypt(self, metadata: MessageMetadata, payload: bytes | memoryview) -> bytes:
        """The payload as it is.

        Raises:
            CryptoError: It is not an `EncryptedPayload`, so that nobody could read it.
        """
        if not isinstance(payload, EncryptedPayload):
            raise CryptoError("expected an EncryptedPayload, got bytes without an IV")
        del metadata.encryption_keys[:]
        metadata.encryption_keys.extend(self._keys)
        metadata.encryption_param = payload.param
        if payload.compression is not CompressionType.NONE:
            metadata.compression = proto.CompressionType.ValueType(payload.compression.value)
            metadata.uncompressed_size = payload.uncompressed_size
        return payload
