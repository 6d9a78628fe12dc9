"""Key readers: supply the keys of end-to-end encryption.

A reader gives the public key that a producer wraps its data keys with, and the private key that a
consumer unwraps them with, both as PEM. `CryptoKeyReader(public_key_path, private_key_path)` reads
files. Readers of an application's own derive from it and define `get_public_key` and
`get_private_key`, plain functions or coroutine functions.

Source: CryptoKeyReader and EncryptionKeyInfo in Pulsar's Java client; CryptoKeyReader in the
official Python client.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pulsar_py.common.errors import CryptoError

__all__ = ["CryptoKeyReader", "EncryptionKeyInfo", "read_private_key", "read_public_key"]


@dataclass(frozen=True, slots=True)
class EncryptionKeyInfo:
    """A key, and metadata of its reader."""

    key: bytes
    """PEM: SubjectPublicKeyInfo for a public key, PKCS 8, PKCS 1 or SEC 1 for a private one."""
    metadata: Mapping[str, str] = field(default_factory=dict)
    """Sent in each message beside the wrapped key, and given to the consumer's key reader."""


KeyAnswer = EncryptionKeyInfo | bytes | str


class CryptoKeyReader:
    """Reads keys from two files, whatever the key's name; derive from it for anything else."""

    def __init__(self, public_key_path: str = "", private_key_path: str = "") -> None:
        """Paths of PEM files; producers need no private key, and consumers no public one."""
        self._public_key_path = public_key_path
        self._private_key_path = private_key_path

    def get_public_key(
        self, key_name: str, metadata: Mapping[str, str]
    ) -> KeyAnswer | Awaitable[KeyAnswer]:
        """The public key of that name, for a producer; called again at each rotation."""
        del key_name, metadata
        return EncryptionKeyInfo(_read(self._public_key_path, "public_key_path"))

    def get_private_key(
        self, key_name: str, metadata: Mapping[str, str]
    ) -> KeyAnswer | Awaitable[KeyAnswer]:
        """The private key of that name, for a consumer; called for each data key not seen before.

        Args:
            key_name: The name by which the producer encrypted.
            metadata: The `EncryptionKeyInfo.metadata` of the producer's reader.
        """
        del key_name, metadata
        return EncryptionKeyInfo(_read(self._private_key_path, "private_key_path"))


def _read(path: str, name: str) -> bytes:
    if not path:
        raise CryptoError(f"the key reader has no {name}")
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise CryptoError(f"{name}: {path}: {error.strerror or error}") from error


async def read_public_key(reader: CryptoKeyReader, key_name: str) -> EncryptionKeyInfo:
    """The reader's public key; a plain function is called in a thread, as it may block.

    Raises:
        CryptoError: The reader failed or returned something else; the message names the key.
    """
    return await _ask(reader.get_public_key, f"public key {key_name}", key_name, {})


async def read_private_key(
    reader: CryptoKeyReader, key_name: str, metadata: Mapping[str, str]
) -> EncryptionKeyInfo:
    """The reader's private key; a plain function is called in a thread, as it may block.

    Raises:
        CryptoError: The reader failed or returned something else; the message names the key.
    """
    return await _ask(reader.get_private_key, f"private key {key_name}", key_name, metadata)


async def _ask(
    ask: Callable[[str, Mapping[str, str]], KeyAnswer | Awaitable[KeyAnswer]],
    what: str,
    key_name: str,
    metadata: Mapping[str, str],
) -> EncryptionKeyInfo:
    try:
        if inspect.iscoroutinefunction(ask):
            answer = await ask(key_name, metadata)
        else:
            answer = await asyncio.to_thread(ask, key_name, metadata)
            if inspect.isawaitable(answer):
                answer = await answer
    except CryptoError as error:
        raise CryptoError(f"{what}: {error}") from error
    except Exception as error:  # a user's reader may raise anything
        raise CryptoError(f"{what}: the key reader failed: {error!r}") from error
    if isinstance(answer, EncryptionKeyInfo):
        return answer
    if isinstance(answer, str | bytes):
        return EncryptionKeyInfo(answer.encode() if isinstance(answer, str) else answer)
    raise CryptoError(
        f"{what}: the key reader returned {type(answer).__name__}, "
        "expected EncryptionKeyInfo, bytes or str"
    )
