"""Key readers: supply the keys of end-to-end encryption.

A reader gives the public key that a producer wraps its data keys with, and the private key that a
consumer unwraps them with, both as PEM. Own readers derive from `CryptoKeyReader` and define
`get_public_key` and `get_private_key`, plain functions or coroutine functions.

Source: CryptoKeyReader and EncryptionKeyInfo in Pulsar's Java client; CryptoKeyReader in the
official Python client, where it is what here is `DefaultCryptoKeyReader` (both spellings work:
`CryptoKeyReader(public_key_path, private_key_path)` reads files).
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
    """A key and what its reader wants to travel with it."""

    key: bytes
    """PEM: SubjectPublicKeyInfo for a public key, PKCS 8, PKCS 1 or SEC 1 for a private one."""
    metadata: Mapping[str, str] = field(default_factory=dict)
    """Goes out in each message beside the wrapped key, and to the reader on the other side."""


KeyAnswer = EncryptionKeyInfo | bytes | str


class CryptoKeyReader:
    """Reads keys from two files, whatever the key's name; derive from it for anything else."""

    def __init__(self, public_key_path: str = "", private_key_path: str = "") -> None:
        """Paths of PEM files; who only produces needs no private key, and the other way round."""
        self._public_key_path = public_key_path
        self._private_key_path = private_key_path

    def get_public_key(
        self, key_name: str, metadata: Mapping[str, str]
    ) -> KeyAnswer | Awaitable[KeyAnswer]:
        """The public key of that name, for a producer; asked again at each rotation."""
        del key_name, metadata
        return EncryptionKeyInfo(_read(self._public_key_path, "public_key_path"))

    def get_private_key(
        self, key_name: str, metadata: Mapping[str, str]
    ) -> KeyAnswer | Awaitable[KeyAnswer]:
        """The private key of that name, for a consumer; asked for each data key not seen before.

        Args:
            key_name: As the producer named it.
            metadata: What the producer's reader gave along.
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
    """The reader's public key; a plain reader is asked in a thread, as it may block.

    Raises:
        CryptoError: It can't be had; names the key.
    """
    return await _ask(reader.get_public_key, f"public key {key_name}", key_name, {})


async def read_private_key(
    reader: CryptoKeyReader, key_name: str, metadata: Mapping[str, str]
) -> EncryptionKeyInfo:
    """The reader's private key; a plain reader is asked in a thread, as it may block.

    Raises:
        CryptoError: It can't be had; names the key.
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
    except Exception as error:  # a reader of the user's may raise anything
        raise CryptoError(f"{what}: the key reader failed: {error!r}") from error
    if isinstance(answer, EncryptionKeyInfo):
        return answer
    if isinstance(answer, str | bytes):
        return EncryptionKeyInfo(answer.encode() if isinstance(answer, str) else answer)
    raise CryptoError(
        f"{what}: the key reader returned {type(answer).__name__}, "
        "expected EncryptionKeyInfo, bytes or str"
    )
