"""End-to-end encryption of payloads: data keys, their renewal, and both directions.

    payload on the wire     ciphertext | GCM tag (16 bytes)      AES-256-GCM, no associated data
    metadata                encryption_keys: one a key name: the data key (32 bytes), wrapped
                            encryption_param: IV (12 bytes), fresh for each payload

A producer owns a `MessageEncryptor`: it makes a data key, wraps it with each configured public key
and renews it every four hours. A consumer owns a `MessageDecryptor`: it unwraps each data key once
and remembers it. Both work on whole payloads (batch body or chunk, after compression). What to do
with a failure is the consumer's to decide, and the encryptor's by `ProducerCryptoFailureAction`.

Source: MessageCrypto and MessageCryptoBc in Pulsar's Java client.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Final

from pulsar_py.client.crypto_keys import CryptoKeyReader
from pulsar_py.client.enums import CompressionType, ProducerCryptoFailureAction
from pulsar_py.proto.PulsarApi_pb2 import MessageMetadata

__all__ = [
    "ENCRYPTION_OVERHEAD_BYTES",
    "ROTATION_SECONDS",
    "EncryptionContext",
    "EncryptionKey",
    "MessageDecryptor",
    "MessageEncryptor",
]

ROTATION_SECONDS: Final = 4 * 3600.0
"""How long a producer uses one data key; how long a consumer remembers one it doesn't meet."""

ENCRYPTION_OVERHEAD_BYTES: Final = 16
"""By how much a payload grows."""


class MessageEncryptor:
    """What a producer encrypts with; owned by it.

    The producer awaits `rotate` before its first message and whenever `rotation_due` says so; in
    between `encrypt` is plain and fast.
    """

    def __init__(
        self,
        key_names: Collection[str],
        key_reader: CryptoKeyReader,
        *,
        failure_action: ProducerCryptoFailureAction = ProducerCryptoFailureAction.FAIL,
        random_bytes: Callable[[int], bytes] = os.urandom,
    ) -> None:
        """`key_names` are wrapped with all; each consumer needs the private key of one.

        Raises:
            InvalidConfigurationError: No key name, or no reader.
        """
        raise NotImplementedError

    async def rotate(self, now: float) -> None:
        """Read all public keys again and make a new data key; on failure the old one stays.

        Args:
            now: Seconds of the monotonic clock.

        Raises:
            CryptoError: A key can't be had or used, with FAIL; with SEND it is logged.
        """
        raise NotImplementedError

    def rotation_due(self, now: float) -> bool:
        """Whether the data key is missing, old, or doesn't fit the key names any more."""
        raise NotImplementedError

    def add_key(self, key_name: str) -> None:
        """Wrap for this key too, from the next `rotate` on (which is due at once)."""
        raise NotImplementedError

    def remove_key(self, key_name: str) -> None:
        """Wrap for this key no more, from the next payload on; a new data key is due at once."""
        raise NotImplementedError

    def encrypt(self, metadata: MessageMetadata, payload: bytes) -> bytes:
        """The payload as it goes out; puts keys and IV into `metadata`.

        With SEND and without a data key the payload goes out as it is, and `metadata` says so.

        Raises:
            CryptoError: There is no data key, with FAIL.
        """
        raise NotImplementedError


class MessageDecryptor:
    """What a consumer decrypts with; owned by it. Without a reader everything encrypted fails."""

    def __init__(self, key_reader: CryptoKeyReader | None, *, data_keys_limit: int = 1024) -> None:
        """`data_keys_limit`: how many unwrapped data keys are remembered at most."""
        raise NotImplementedError

    def is_encrypted(self, metadata: MessageMetadata) -> bool:
        """Whether the payload has to be decrypted at all."""
        return bool(metadata.encryption_keys)

    def knows_key(self, metadata: MessageMetadata) -> bool:
        """Whether `decrypt` can do without asking the key reader."""
        raise NotImplementedError

    async def learn_key(self, metadata: MessageMetadata) -> None:
        """Ask the reader and unwrap the data key, so that `decrypt` knows it.

        Raises:
            CryptoError: No private key can be had, or none fits.
        """
        raise NotImplementedError

    def decrypt(self, metadata: MessageMetadata, payload: bytes | memoryview) -> bytes:
        """The payload before encryption (still compressed).

        Raises:
            CryptoError: The data key was not learned, or the payload is not what was encrypted.
        """
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class EncryptionKey:
    """One wrapped data key of a message."""

    key: str
    """The key's name."""
    value: bytes
    """The data key, wrapped."""
    metadata: dict[str, str]
    """What the producer's key reader gave along."""


@dataclass(frozen=True, slots=True)
class EncryptionContext:
    """How a message was encrypted: enough for an application to decrypt it by itself."""

    _keys: Sequence[EncryptionKey]
    _param: bytes
    _algorithm: str
    _compression_type: CompressionType
    _uncompressed_message_size: int
    _batch_size: int
    _is_decryption_failed: bool

    @classmethod
    def of(cls, metadata: MessageMetadata, *, is_decryption_failed: bool) -> EncryptionContext:
        """What `metadata` says."""
        return cls(
            [
                EncryptionKey(each.key, each.value, {m.key: m.value for m in each.metadata})
                for each in metadata.encryption_keys
            ],
            metadata.encryption_param,
            metadata.encryption_algo,
            CompressionType(metadata.compression),
            metadata.uncompressed_size,
            metadata.num_messages_in_batch if metadata.HasField("num_messages_in_batch") else -1,
            is_decryption_failed,
        )

    def keys(self) -> list[EncryptionKey]:
        """The data key, once for each key name."""
        return list(self._keys)

    def param(self) -> bytes:
        """The IV."""
        return self._param

    def algorithm(self) -> str:
        """What the producer called its algorithm; the usual clients leave it empty."""
        return self._algorithm

    def compression_type(self) -> CompressionType:
        """How the payload was compressed before it was encrypted."""
        return self._compression_type

    def uncompressed_message_size(self) -> int:
        """Bytes before compression; 0 if the producer did not say."""
        return self._uncompressed_message_size

    def batch_size(self) -> int:
        """Messages in the batch; -1 if it is none."""
        return self._batch_size

    def is_decryption_failed(self) -> bool:
        """Whether the message is delivered as it came."""
        return self._is_decryption_failed
