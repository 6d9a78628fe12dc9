from __future__ import annotations

import pytest
from msgspec.structs import replace

from pulsar_py.common.errors import CorruptDataError
from pulsar_py.storage.shared.manifest import LogState, Manifest

MANIFEST = Manifest((3, 400), {1: LogState(100, 50), 12: LogState(7, 7)}, (9, 4), 13, 10)


@pytest.mark.parametrize("manifest", [Manifest(), MANIFEST])
def test_a_manifest_is_read_back(manifest: Manifest) -> None:
    assert Manifest.decode(manifest.encode()) == manifest


def test_any_flipped_byte_is_damage() -> None:
    data = MANIFEST.encode()
    for at in (0, 5, 22, 40, len(data) - 2):
        damaged = bytearray(data)
        damaged[at] ^= 1
        with pytest.raises(CorruptDataError, match="MANIFEST"):
            Manifest.decode(bytes(damaged))
    with pytest.raises(CorruptDataError):
        Manifest.decode(data[:-3])
    with pytest.raises(CorruptDataError):
        Manifest.decode(b"")


def test_another_version_is_refused() -> None:
    data = MANIFEST.encode().replace(b"STORAGE 1", b"STORAGE 2")
    with pytest.raises(
        CorruptDataError,
        match="MANIFEST: manifest has format version 2, this pulsar_py reads version 1",
    ):
        Manifest.decode(data)


@pytest.mark.parametrize(
    "wrong",
    [
        replace(MANIFEST, next_log_id=12),
        replace(MANIFEST, next_table_id=9),
        replace(MANIFEST, tables=(9, 4, 9)),
        replace(MANIFEST, logs={1: LogState(100, 101)}),
    ],
    ids=["log used twice", "table used twice", "table named twice", "more alive than there is"],
)
def test_what_no_storage_can_be_is_never_written(wrong: Manifest) -> None:
    with pytest.raises(AssertionError):
        wrong.encode()
