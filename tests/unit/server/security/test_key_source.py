"""key_source: the four notations of keys, and files that change."""

from __future__ import annotations

import base64
import logging
from pathlib import Path

import pytest

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.server.security.key_source import LOOK_AGAIN_SECONDS, KeySource, key_bytes


def read(text: str) -> bytes:
    return KeySource("aKey", text, bytes, is_secret=True).current()


def test_all_notations_name_the_same(tmp_path: Path) -> None:
    path = tmp_path / "a key"
    path.write_bytes(b"\x00secret")
    encoded = base64.b64encode(b"\x00secret").decode()
    quoted = str(path).replace(" ", "%20")
    for text in (
        f"data:;base64,{encoded}",
        "data:,%00secret",
        str(path),
        f"file://{quoted}",
        encoded,
    ):
        assert read(text) == b"\x00secret"


@pytest.mark.parametrize("text", ["data:base64", "file:///no/such/file", "%%%"])
def test_what_can_not_be_read_is_named(text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^aKey: "):
        read(text)


def test_a_file_that_others_can_read_brings_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "key"
    path.write_bytes(b"x")
    path.chmod(0o600)
    read(str(path))
    assert not caplog.records
    path.chmod(0o644)
    with caplog.at_level(logging.WARNING):
        read(str(path))
    assert "chmod 600" in caplog.text


def test_those_who_ask_often_share_a_look_at_the_file(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_bytes(b"one")
    source = KeySource("aKey", str(path), bytearray, is_secret=False)
    first = source.recent(10.0)
    path.write_bytes(b"other")
    assert source.recent(10.0 + 0.9 * LOOK_AGAIN_SECONDS) is first
    second = source.recent(10.0 + LOOK_AGAIN_SECONDS)
    assert second == b"other"
    path.unlink()
    path.write_bytes(b"other")  # written anew, with the same in it
    assert source.recent(20.0) is second
    assert source.can_change
    assert not KeySource("aKey", "data:,x", bytes, is_secret=False).can_change


def test_a_file_that_is_gone_keeps_its_value(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_bytes(b"one")
    source = KeySource("aKey", str(path), bytes, is_secret=False)
    path.write_bytes(b"another")
    assert source.current() == b"another"
    path.unlink()
    assert source.current() == b"another"


def test_a_key_in_base64_is_decoded_and_a_raw_one_is_not() -> None:
    assert key_bytes(base64.b64encode(bytes(range(40)))) == bytes(range(40))
    assert key_bytes(bytes(range(40))) == bytes(range(40))
