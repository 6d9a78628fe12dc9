from __future__ import annotations

import asyncio

import pytest

from pulsar_py.bookkeeper.bookies.registry import BookieRegistry, bookie_address
from pulsar_py.common.errors import StorageError
from pulsar_py.metadata.memory_store import MemoryMetadataStore
from pulsar_py.testing.clock import VirtualClock, run_virtual
from tests.unit.bookkeeper.recorded import RECORDED

RECORDED_VALUE = bytes.fromhex(RECORDED["bookies"]["available bookie"])


def test_a_recorded_registration_names_the_port_of_entries() -> None:
    assert bookie_address("some-name", RECORDED_VALUE) == ("127.0.0.1", 51759)


def test_without_a_registration_the_id_is_the_address() -> None:
    assert bookie_address("10.0.0.7:3181", b"") == ("10.0.0.7", 3181)
    assert bookie_address("::1:3181", b"") == ("::1", 3181)


@pytest.mark.parametrize("bookie_id", ["name", "name:", ":1", "name:port"])
def test_an_id_that_is_no_address_needs_a_registration(bookie_id: str) -> None:
    with pytest.raises(StorageError, match="not registered"):
        bookie_address(bookie_id, b"")


def test_a_registration_that_can_not_be_read_is_named() -> None:
    with pytest.raises(StorageError, match="a:1"):
        bookie_address("a:1", b"\xff\xff")


def test_bookies_that_take_entries_are_followed() -> None:
    async def work() -> None:
        metadata = MemoryMetadataStore(VirtualClock())
        registry = BookieRegistry(metadata, "/ledgers")
        assert await registry.writable() == ()
        await metadata.put("/ledgers/available/b:1", b"")
        await metadata.put("/ledgers/available/a:1", b"")
        await metadata.put("/ledgers/available/readonly/c:1", b"")
        assert await registry.writable() == ("a:1", "b:1")
        await metadata.delete("/ledgers/available/a:1")
        assert await registry.writable() == ("b:1",)
        registry.close()

    run_virtual(work())


def test_the_address_of_a_bookie_that_only_serves_reads_is_found() -> None:
    async def work() -> None:
        metadata = MemoryMetadataStore(VirtualClock())
        registry = BookieRegistry(metadata, "/ledgers")
        await metadata.put("/ledgers/available/readonly/x", RECORDED_VALUE)
        assert await registry.address("x") == ("127.0.0.1", 51759)
        assert await registry.address("y:7") == ("y", 7)
        registry.close()

    run_virtual(work())


def test_racks_are_followed_and_a_map_that_can_not_be_read_changes_nothing() -> None:
    async def work() -> None:
        metadata = MemoryMetadataStore(VirtualClock())
        registry = BookieRegistry(metadata, "/ledgers")
        assert (await registry.racks()).racks == {}
        for value in (b'{"g": {"a:1": {"rack": "/r"}}}', b"{"):
            await metadata.put("/bookies", value)
            assert (await registry.racks()).rack_of("a:1") == "/r"
        await metadata.put("/bookies", b"{}")
        assert (await registry.racks()).racks == registry.known_racks.racks == {}
        registry.close()

    run_virtual(work())


def test_what_was_listed_last_is_known_without_asking_and_changes_are_told() -> None:
    async def work() -> None:
        metadata = MemoryMetadataStore(VirtualClock())
        registry = BookieRegistry(metadata, "/ledgers")
        told: list[tuple[str, ...]] = []
        registry.on_change = lambda: told.append(registry.known_writable)
        await metadata.put("/ledgers/available/a:1", b"")
        await metadata.put("/ledgers/available/readonly/c:1", b"")
        assert await registry.writable() == ("a:1",)
        assert registry.known_read_only == ("c:1",)
        await metadata.delete("/ledgers/available/a:1")
        await asyncio.sleep(0)
        assert told[0] == ()
        assert told[-1] == ("a:1",)
        registry.close()

    run_virtual(work())


def test_racks_are_those_of_the_brokers_metadata() -> None:
    async def work() -> None:
        clock = VirtualClock()
        metadata, brokers = MemoryMetadataStore(clock), MemoryMetadataStore(clock)
        await metadata.put("/bookies", b'{"a": {"x:1": {"rack": "/bookkeepers"}}}')
        registry = BookieRegistry(metadata, "/ledgers", brokers)
        assert (await registry.racks()).racks == {}
        await brokers.put("/bookies", b'{"a": {"x:1": {"rack": "/brokers"}}}')
        assert (await registry.racks()).racks["x:1"] == "/brokers"
        registry.close()

    run_virtual(work())
