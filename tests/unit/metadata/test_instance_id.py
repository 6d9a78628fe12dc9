"""Metadata and ledgers of two instances, or one without the other, are refused."""

from __future__ import annotations

import pytest

from pulsar_py.common.disks.memory_disk import MemoryDisk
from pulsar_py.common.errors import InstanceMismatchError
from pulsar_py.common.loops.clock import SystemClock
from pulsar_py.metadata.instance_id import FILE, PATH, check_instance_id
from pulsar_py.metadata.memory_store import MemoryMetadataStore


@pytest.fixture
def metadata() -> MemoryMetadataStore:
    return MemoryMetadataStore(SystemClock())


@pytest.fixture
def disk() -> MemoryDisk:
    return MemoryDisk()


async def test_a_fresh_instance_keeps_its_first_id(
    metadata: MemoryMetadataStore, disk: MemoryDisk
) -> None:
    assert await check_instance_id(metadata, disk, new_id="one") == "one"
    assert await check_instance_id(metadata, disk, new_id="two") == "one"
    assert await disk.read_whole(FILE) == b"one\n"


async def test_a_crash_before_the_key_was_written_is_a_fresh_instance(
    metadata: MemoryMetadataStore, disk: MemoryDisk
) -> None:
    await disk.replace(FILE, b"lost\n")

    assert await check_instance_id(metadata, disk, new_id="one") == "one"


async def test_ledgers_without_their_metadata_are_refused(
    metadata: MemoryMetadataStore, disk: MemoryDisk
) -> None:
    await disk.replace(FILE, b"one\n")
    await disk.make_directory("journal")
    await (await disk.create("journal/0000000001")).close()

    with pytest.raises(InstanceMismatchError, match=r"instance one, but the metadata .* missing"):
        await check_instance_id(metadata, disk, new_id="two")


async def test_metadata_without_its_ledgers_is_refused(
    metadata: MemoryMetadataStore, disk: MemoryDisk
) -> None:
    await metadata.put(PATH, b"one")

    with pytest.raises(InstanceMismatchError, match=r"instance one, but its ledgers are missing"):
        await check_instance_id(metadata, disk, new_id="two")


async def test_parts_of_two_instances_are_refused(
    metadata: MemoryMetadataStore, disk: MemoryDisk
) -> None:
    await metadata.put(PATH, b"one")
    await disk.replace(FILE, b"two\n")

    with pytest.raises(
        InstanceMismatchError, match="instance one, the ledgers are of instance two"
    ):
        await check_instance_id(metadata, disk, new_id="three")
