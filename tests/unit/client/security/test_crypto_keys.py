"""Key readers: files, plain and asyncio ones of the user's, and what goes wrong with them."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from pathlib import Path

import pytest

from pulsar_py.client.security.crypto_keys import (
    CryptoKeyReader,
    EncryptionKeyInfo,
    read_private_key,
    read_public_key,
)
from pulsar_py.common.errors import CryptoError


class PlainReader(CryptoKeyReader):
    def get_public_key(self, key_name: str, metadata: Mapping[str, str]) -> EncryptionKeyInfo:
        return EncryptionKeyInfo(f"public {key_name}".encode(), {"version": "1"})

    def get_private_key(self, key_name: str, metadata: Mapping[str, str]) -> str:
        return f"private {key_name} {dict(metadata)}"


class AsyncReader(CryptoKeyReader):
    async def get_public_key(self, key_name: str, metadata: Mapping[str, str]) -> bytes:
        return f"public {key_name}".encode()

    def get_private_key(self, key_name: str, metadata: Mapping[str, str]) -> Awaitable[bytes]:
        return self.get_public_key(key_name, metadata)


async def test_two_files_serve_every_name(tmp_path: Path) -> None:
    (tmp_path / "public").write_bytes(b"one")
    (tmp_path / "private").write_bytes(b"two")
    reader = CryptoKeyReader(str(tmp_path / "public"), str(tmp_path / "private"))

    assert (await read_public_key(reader, "any")).key == b"one"
    assert (await read_private_key(reader, "other", {})).key == b"two"


async def test_files_are_read_each_time(tmp_path: Path) -> None:
    (tmp_path / "public").write_bytes(b"one")
    reader = CryptoKeyReader(str(tmp_path / "public"))
    await read_public_key(reader, "any")
    (tmp_path / "public").write_bytes(b"two")

    assert (await read_public_key(reader, "any")).key == b"two"


async def test_own_readers_may_be_plain() -> None:
    assert await read_public_key(PlainReader(), "k") == EncryptionKeyInfo(
        b"public k", {"version": "1"}
    )
    assert (await read_private_key(PlainReader(), "k", {"a": "b"})).key == b"private k {'a': 'b'}"


async def test_own_readers_may_be_coroutines() -> None:
    assert (await read_public_key(AsyncReader(), "k")).key == b"public k"
    assert (await read_private_key(AsyncReader(), "k", {})).key == b"public k"


async def test_a_file_that_is_missing_is_named(tmp_path: Path) -> None:
    reader = CryptoKeyReader(str(tmp_path / "nowhere"))

    with pytest.raises(
        CryptoError, match=r"public key k: public_key_path: .*nowhere: No such file"
    ):
        await read_public_key(reader, "k")
    with pytest.raises(CryptoError, match="private key k: the key reader has no private_key_path"):
        await read_private_key(reader, "k", {})


async def test_what_a_reader_raises_becomes_a_crypto_error() -> None:
    class Broken(CryptoKeyReader):
        def get_public_key(self, key_name: str, metadata: Mapping[str, str]) -> bytes:
            raise KeyError(key_name)

        async def get_private_key(self, key_name: str, metadata: Mapping[str, str]) -> bytes:
            return 7  # type: ignore[return-value]

    with pytest.raises(CryptoError, match="public key k: the key reader failed: KeyError"):
        await read_public_key(Broken(), "k")
    with pytest.raises(CryptoError, match="private key k: the key reader returned int"):
        await read_private_key(Broken(), "k", {})
