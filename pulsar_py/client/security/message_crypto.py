"""Encrypts and decrypts payloads end to end, and renews data keys.

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

import logging
import os
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from pulsar_py.client.security.crypto_keys import (
    CryptoKeyReader,
    EncryptionKeyInfo,
    read_private_key,
    read_public_key,
)
from pulsar_py.client.security.key_wrapping import (
    load_private_key,
    load_public_key,
    unwrap_key,
    wrap_key,
)
from pulsar_py.client.shared.enums import CompressionType, ProducerCryptoFailureAction
from pulsar_py.common.errors import CryptoError, InvalidConfigurationError
from pulsar_py.proto.PulsarApi_pb2 import EncryptionKeys, MessageMetadata

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

__all__ = [
    "DATA_KEYS_LIMIT",
    "ENCRYPTION_OVERHEAD_BYTES",
    "RETRY_SECONDS",
    "ROTATION_SECONDS",
    "EncryptionContext",
    "EncryptionKey",
    "MessageDecryptor",
    "MessageEncryptor",
]

ROTATION_SECONDS: Final = 4 * 3600.0
"""How long a producer uses one data key (MessageCrypto's schedule in ProducerImpl)."""

RETRY_SECONDS: Final = 10.0
"""How long a producer waits after a rotation that failed."""

DATA_KEYS_LIMIT: Final = 1024
"""The most data keys that a consumer remembers: those it used last."""

ENCRYPTION_OVERHEAD_BYTES: Final = 16
"""Bytes by which encryption lengthens a payload: the GCM tag."""

_DATA_KEY_BYTES: Final = 32
_IV_BYTES: Final = 12

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _DataKey:
    """A producer's data key between two rotations."""

    names: frozenset[str]
    """The key names that it is wrapped for."""
    wrapped: tuple[EncryptionKeys, ...]
    """The `encryption_keys` of messages' metadata."""
    cipher: AESGCM
    made_at: float
    """Seconds of the monotonic clock."""


class MessageEncryptor:
    """Encrypts the payloads of one producer, which owns it.

    The producer awaits `rotate` before its first message and whenever `rotation_due` says so; in
    between `encrypt` is plain and fast. Without a rotation a data key just stays in use.
    """

    def __init__(
        self,
        key_names: Collection[str],
        key_reader: CryptoKeyReader,
        *,
        failure_action: ProducerCryptoFailureAction = ProducerCryptoFailureAction.FAIL,
        random_bytes: Callable[[int], bytes] = os.urandom,
    ) -> None:
        """Data keys are wrapped for each of `key_names`: a consumer needs the private key of one.

        Raises:
            InvalidConfigurationError: No key name, or no reader.
        """
        names = [key_names] if isinstance(key_names, str) else list(key_names)
        if not names or not all(isinstance(name, str) and name for name in names):
            raise InvalidConfigurationError(
                f"encryption_key: expected names of keys, got {key_names!r}"
            )
        if not hasattr(key_reader, "get_public_key"):
            raise InvalidConfigurationError(
                f"crypto_key_reader: needed for encryption_key={key_names!r}, got {key_reader!r}"
            )
        # The key names that the next data key is wrapped for.
        self._names = frozenset(names)
        self._reader = key_reader
        self._failure_action = failure_action
        self._random_bytes = random_bytes
        # The current data key; None before the first `rotate`.
        self._data_key: _DataKey | None = None
        # The time of the last `rotate` that failed, for the delay before the next attempt.
        self._failed_at: float | None = None

    @property
    def key_names(self) -> frozenset[str]:
        """The key names that data keys are wrapped for."""
        return self._names

    async def rotate(self, now: float) -> None:
        """Read all public keys again and make a new data key; on failure the old one stays.

        Args:
            now: Seconds of the monotonic clock.

        Raises:
            CryptoError: A public key could not be read or used, with FAIL; with SEND that is
                logged.
        """
        names = self._names
        try:
            infos = {name: await read_public_key(self._reader, name) for name in sorted(names)}
            self._data_key = self._make(infos, now)
            self._failed_at = None
        except CryptoError as error:
            self._failed_at = now
            if self._failure_action is ProducerCryptoFailureAction.FAIL:
                raise
            logger.warning(
                "no data key for %s: %s",
                ", ".join(sorted(names)),
                error,
                extra={"key_names": sorted(names), "error": str(error)},
            )

    def _make(self, infos: Mapping[str, EncryptionKeyInfo], now: float) -> _DataKey:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415 - 60 ms

        data_key = self._random_bytes(_DATA_KEY_BYTES)
        wrapped = tuple(_wrapped(name, info, data_key) for name, info in infos.items())
        return _DataKey(frozenset(infos), wrapped, AESGCM(data_key), now)

    def rotation_due(self, now: float) -> bool:
        """Whether the data key is missing, too old, or wrapped for other key names."""
        if self._failed_at is not None and now - self._failed_at < RETRY_SECONDS:
            return False
        current = self._data_key
        return (
            current is None
            or current.names != self._names
            or now - current.made_at >= ROTATION_SECONDS
        )

    def add_key(self, key_name: str) -> None:
        """Wrap data keys for this name, too, from the next `rotate` on (which is due at once)."""
        self._names |= {key_name}
        self._failed_at = None

    def remove_key(self, key_name: str) -> None:
        """Stop wrapping for this name, from the next payload on; a new data key is due at once.

        The owner of the key may know the current data key, and can decrypt messages until `rotate`
        has made another.

        Raises:
            InvalidConfigurationError: It is the last one.
        """
        if self._names == {key_name}:
            raise InvalidConfigurationError(
                f"encryption_key: {key_name} is the last one, and one is needed"
            )
        self._names -= {key_name}
        self._failed_at = None
        if (current := self._data_key) is not None:
            left = tuple(each for each in current.wrapped if each.key != key_name)
            # `names` stays as it was, so that `rotation_due` sees the difference. If nothing is
            # wrapped any more, there is no usable data key.
            self._data_key = replace(current, wrapped=left) if left else None

    def encrypt(self, metadata: MessageMetadata, payload: bytes | memoryview) -> bytes:
        """The encrypted payload; replaces the keys and the IV in `metadata`.

        With SEND and without a data key the payload is returned as it is, and `metadata` has no
        keys.

        Raises:
            CryptoError: There is no data key, with FAIL.
        """
        metadata.ClearField("encryption_keys")
        if (current := self._data_key) is None:
            return self._without_key(metadata, payload)
        iv = self._random_bytes(_IV_BYTES)
        metadata.encryption_keys.extend(current.wrapped)
        metadata.encryption_param = iv
        return current.cipher.encrypt(iv, payload, None)

    def _without_key(self, metadata: MessageMetadata, payload: bytes | memoryview) -> bytes:
        if self._failure_action is ProducerCryptoFailureAction.FAIL:
            raise CryptoError(f"no data key for {', '.join(sorted(self._names))}")
        metadata.ClearField("encryption_param")
        return bytes(payload)


def _wrapped(name: str, info: EncryptionKeyInfo, data_key: bytes) -> EncryptionKeys:
    keys = EncryptionKeys(key=name, value=wrap_key(load_public_key(info.key, name), data_key))
    for key, value in info.metadata.items():
        keys.metadata.add(key=key, value=value)
    return keys


class MessageDecryptor:
    """Decrypts the payloads of one consumer, which owns it; fails if there is no key reader."""

    def __init__(
        self, key_reader: CryptoKeyReader | None, *, data_keys_limit: int = DATA_KEYS_LIMIT
    ) -> None:
        """`data_keys_limit` is the most unwrapped data keys that are remembered."""
        self._reader = key_reader
        self._limit = data_keys_limit
        # Wrapped data key -> its cipher; the least recently used one is first.
        self._ciphers: OrderedDict[bytes, AESGCM] = OrderedDict()

    def is_encrypted(self, metadata: MessageMetadata) -> bool:
        """Whether the payload has to be decrypted at all."""
        return bool(metadata.encryption_keys)

    def knows_key(self, metadata: MessageMetadata) -> bool:
        """Whether `decrypt` has the data key, so that `learn_key` need not be awaited."""
        return any(each.value in self._ciphers for each in metadata.encryption_keys)

    async def learn_key(self, metadata: MessageMetadata) -> None:
        """Get the private key from the reader and unwrap the data key, so that `decrypt` has it.

        Raises:
            CryptoError: The reader has no private key for any of the names, or none fits.
        """
        if self.knows_key(metadata):
            return
        if self._reader is None:
            raise CryptoError(f"no crypto_key_reader for {_key_names(metadata)}")
        problems = []
        # The metadata may change while the reader is awaited: read the fields first.
        for name, wrapped, notes in _keys_of(metadata):
            try:
                info = await read_private_key(self._reader, name, notes)
                self._remember(wrapped, unwrap_key(load_private_key(info.key, name), wrapped))
            except CryptoError as error:
                problems.append(f"{name}: {error}")
            else:
                return
        raise CryptoError("; ".join(problems))

    def _remember(self, wrapped: bytes, data_key: bytes) -> None:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415 - 60 ms

        try:
            self._ciphers[wrapped] = AESGCM(data_key)
        except ValueError as error:
            raise CryptoError(f"a data key of {len(data_key)} bytes: {error}") from None
        while len(self._ciphers) > self._limit:
            self._ciphers.popitem(last=False)

    def decrypt(self, metadata: MessageMetadata, payload: bytes | memoryview) -> bytes:
        """The payload before encryption (still compressed).

        Raises:
            CryptoError: The data key was not learned, or the payload was changed.
        """
        cipher = self._cipher_of(metadata)
        if cipher is None:
            raise CryptoError(f"no data key for {_key_names(metadata)}")
        try:
            return cipher.decrypt(metadata.encryption_param, payload, None)
        except _decryption_errors() as error:
            raise CryptoError(
                f"{len(payload)} bytes are damaged, or encrypted with another key than that of "
                f"{_key_names(metadata)} "
                f"({type(error).__name__})"
            ) from error

    def _cipher_of(self, metadata: MessageMetadata) -> AESGCM | None:
        for each in metadata.encryption_keys:
            wrapped = each.value
            if (cipher := self._ciphers.get(wrapped)) is not None:
                self._ciphers.move_to_end(wrapped)
                return cipher
        return None


def _decryption_errors() -> tuple[type[Exception], ...]:
    from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - 60 ms

    return InvalidTag, ValueError  # ValueError for an IV of another length


def _keys_of(metadata: MessageMetadata) -> list[tuple[str, bytes, dict[str, str]]]:
    return [
        (each.key, each.value, {pair.key: pair.value for pair in each.metadata})
        for each in metadata.encryption_keys
    ]


def _key_names(metadata: MessageMetadata) -> str:
    return ", ".join(each.key for each in metadata.encryption_keys)


@dataclass(frozen=True, slots=True)
class EncryptionKey:
    """One wrapped data key of a message."""

    key: str
    """The key's name."""
    value: bytes
    """The data key, wrapped."""
    metadata: dict[str, str]
    """Metadata that the producer's key reader supplied."""


@dataclass(frozen=True, slots=True)
class EncryptionContext:
    """The parameters of a message's encryption: an application can decrypt it with them."""

    _keys: Sequence[EncryptionKey]
    _param: bytes
    _algorithm: str
    _compression_type: CompressionType
    _uncompressed_message_size: int
    _batch_size: int
    _is_decryption_failed: bool

    @classmethod
    def of(cls, metadata: MessageMetadata, *, is_decryption_failed: bool) -> EncryptionContext:
        """The context that a message's metadata describes."""
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
        """The producer's name for its algorithm; Pulsar's clients leave it empty."""
        return self._algorithm

    def compression_type(self) -> CompressionType:
        """The compression of the payload before it was encrypted."""
        return self._compression_type

    def uncompressed_message_size(self) -> int:
        """Bytes before compression; 0 if the producer did not say."""
        return self._uncompressed_message_size

    def batch_size(self) -> int:
        """Messages in the batch; -1 if it is not a batch."""
        return self._batch_size

    def is_decryption_failed(self) -> bool:
        """Whether decryption failed, so that the payload is still encrypted."""
        return self._is_decryption_failed
