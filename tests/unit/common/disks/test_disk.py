"""What every Disk does is in tests/contracts/test_disk.py; here: the interface is one."""

from __future__ import annotations

import random

import pytest

from pulsar_py.common.disks.disk import AppendFile, Disk, ReadFile, read_fully
from pulsar_py.common.errors import StorageError
from pulsar_py.testing.disk import SimulatedDisk


@pytest.mark.parametrize("interface", [Disk, AppendFile, ReadFile])
def test_an_interface_can_not_be_made(interface: type) -> None:
    with pytest.raises(TypeError, match="abstract"):
        interface()


async def test_less_than_the_file_has_is_an_error_and_its_end_is_not() -> None:
    disk = SimulatedDisk(random.Random(1))
    await (await disk.create("f")).append([b"abcdef"])
    file = await disk.open_read("f")
    assert await read_fully(file, 2, 3) == b"cde"
    assert await read_fully(file, 4, 9) == b"ef"
    disk.shorten = lambda path, length: length - 1
    with pytest.raises(StorageError, match="f: offset 2: 2 of 3 bytes read"):
        await read_fully(file, 2, 3)
