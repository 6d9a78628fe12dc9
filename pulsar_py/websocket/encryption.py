"""Reads what clients say who encrypt by themselves: wrapped keys, and each frame's IV (pure).

    encryptionKeys=BASE64     of {"NAME": {"keyValue": base64, "metadata": {"a": "b"}}, ...}
    a producer's frame        "encryptionParam": base64 of the IV;
                              "compressionType" and "uncompressedMessageSize", both or neither

Such a client compresses and encrypts each payload before it sends it, and the broker passes on
what it can't read: it neither batches nor compresses. Other texts in `encryptionKeys` name keys for
the broker to encrypt with. That takes a `cryptoKeyReaderFactoryClassName`, a class of Java and a
setting of Apache Pulsar's proxy, not of its brokers; so they are refused as there.

Source: PIP-290, ProducerHandler in Pulsar.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any, Final

from pulsar_py.client.security.encrypted_elsewhere import EncryptedPayload, WrappedKeys
from pulsar_py.client.security.message_crypto import EncryptionKey
from pulsar_py.common.errors import CryptoError, InvalidConfigurationError
from pulsar_py.common.foreign_json import parse_json
from pulsar_py.websocket.frames import (
    BAD_PAYLOAD,
    COMPRESSIONS,
    FrameError,
    OutgoingFrame,
    base64_bytes,
)

__all__ = ["encrypted_payload", "wrapped_keys"]

_NO_KEYS: Final = (
    "encryptionKeys: the broker has no keys to encrypt with; give base64 of wrapped keys"
)


def wrapped_keys(text: str) -> WrappedKeys:
    """The keys that a producer's parameter `encryptionKeys` has.

    Raises:
        InvalidConfigurationError: A key has no name, or no value.
        CryptoError: It is no such JSON.
    """
    try:
        found = parse_json(base64_bytes(text.strip()), is_java=True)
    except (binascii.Error, ValueError):
        raise CryptoError(_NO_KEYS) from None
    if not isinstance(found, dict) or not found:
        raise CryptoError(_NO_KEYS)
    return WrappedKeys([_key(name, fields) for name, fields in found.items()])


def _key(name: str, fields: Any) -> EncryptionKey:  # Any: JSON
    if not name.strip():
        raise InvalidConfigurationError("encryptionKeys: a key without a name")
    if not isinstance(fields, dict):
        raise InvalidConfigurationError(f"encryptionKeys.{name}: expected keyValue and metadata")
    value, metadata = fields.get("keyValue"), fields.get("metadata")
    if not isinstance(value, str) or not value:
        raise InvalidConfigurationError(f"encryptionKeys.{name}.keyValue: expected base64")
    try:
        data = base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        raise CryptoError(_NO_KEYS) from None
    if metadata is None:
        metadata = {}
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise CryptoError(_NO_KEYS)
    return EncryptionKey(name, data, metadata)


def encrypted_payload(frame: OutgoingFrame) -> EncryptedPayload:
    """What is published of a frame whose client encrypts.

    Raises:
        FrameError: Its IV is not base64, or one of the two fields of compression is missing.
    """
    try:
        param = base64.b64decode(frame.encryption_param or "", validate=True)
    except (binascii.Error, ValueError) as error:
        reason = f"encryptionParam is not base64: {error}"
        raise FrameError(BAD_PAYLOAD, reason, frame.context) from None
    if (frame.compression_type is None) != (frame.uncompressed_bytes is None):
        reason = "compressionType and uncompressedMessageSize: give both or none"
        raise FrameError(BAD_PAYLOAD, reason, frame.context)
    return EncryptedPayload.of(
        frame.payload,
        param=param,
        compression=COMPRESSIONS[frame.compression_type or "NONE"],
        uncompressed_size=frame.uncompressed_bytes or 0,
    )
