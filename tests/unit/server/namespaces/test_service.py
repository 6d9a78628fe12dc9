from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from pulsar_py.common.errors import (
    ManagedLedgerFencedError,
    MetadataUnavailableError,
    ServiceNotReadyError,
    SessionInDoubtError,
    TopicNotFoundError,
)
from pulsar_py.common.names import NamespaceName, TopicName
from pulsar_py.managed_ledger.log.ledger_format import ROOT, cursor_path, ledger_path
from pulsar_py.metadata import paths
from pulsar_py.metadata.documents import LocalPolicies, NamespacePolicies, equal_boundaries
from pulsar_py.metadata.memory_store import MemoryMetadataStore
from pulsar_py.metadata.store import SessionEvent
from pulsar_py.server.namespaces.bundles import topic_hash
from pulsar_py.server.namespaces.lookup import BrokerAddresses, LocalAddresses, LookupType
from pulsar_py.server.namespaces.ownership import BundleOwnership, OwnerRecord
from pulsar_py.testing.clock import VirtualClock
from tests.unit.server.topics.rig import NAMESPACE, Rig, name_of, send


async def test_a_lookup_takes_the_ownership_and_connects(rig: Rig) -> None:
    namespaces, name = rig.broker.namespaces, name_of("t")
    assert not namespaces.is_owned(name)
    result = await namespaces.lookup(name)
    assert namespaces.is_owned(name)
    assert result.type is LookupType.CONNECT
    assert result.addresses.broker_url == "pulsar://localhost:6650"
    assert result.is_authoritative
    assert result.proxy_through_service_url


async def test_lookups_of_all_topics_of_a_bundle_take_it_together(rig: Rig) -> None:
    namespaces = rig.broker.namespaces
    read_count = 0
    read = namespaces._ownership.acquire

    async def acquire(*words: Any) -> OwnerRecord:
        nonlocal read_count
        read_count += 1
        await asyncio.sleep(0)
        return await read(*words)

    namespaces._ownership.acquire = acquire  # type: ignore[method-assign]
    bundle = await namespaces.bundle_of(name_of("t"))
    takes = (namespaces.acquire_bundle(NAMESPACE, bundle) for _ in range(100))
    assert len(set(map(id, await asyncio.gather(*takes)))) == 1
    assert read_count == 2, "for the first one, and for all who came meanwhile"


async def test_clients_go_to_another_owner_themselves(rig: Rig) -> None:
    owner = OwnerRecord(
        LocalAddresses(default=BrokerAddresses(broker_url="pulsar://127.0.0.1:7750"))
    )
    bundle = await rig.broker.namespaces.bundle_of(name_of("t"))
    await rig.metadata.put(paths.bundle_owner(NAMESPACE, bundle), owner.encode())
    result = await rig.broker.namespaces.lookup(name_of("t"))
    assert result.addresses.broker_url == "pulsar://127.0.0.1:7750"
    assert not result.proxy_through_service_url


@pytest.mark.parametrize("namespace", ["public/none", "none/default"])
async def test_missing_namespaces(rig: Rig, namespace: str) -> None:
    with pytest.raises(TopicNotFoundError, match="Namespace not found"):
        await rig.broker.namespaces.lookup(TopicName.parse(f"persistent://{namespace}/t"))


async def test_an_unknown_listener(rig: Rig) -> None:
    with pytest.raises(ServiceNotReadyError):
        await rig.broker.namespaces.lookup(name_of("t"), listener_name="none")


async def test_who_asks_too_early_is_told_to_look_up(rig: Rig) -> None:
    error = await rig.broker.namespaces.not_owned_error(name_of("t"))
    assert "Namespace bundle (public/default/0x" in str(error)
    assert "Please redo the lookup" in str(error)


async def test_unloading_a_namespace_closes_its_topics_and_gives_it_up(rig: Rig) -> None:
    namespaces, cnx = rig.broker.namespaces, rig.cnx()
    names = [f"t{n}" for n in range(8)]
    for number, local_name in enumerate(names):
        topic = await rig.topic(local_name)
        await rig.producer(topic, cnx, producer_id=number)
    await namespaces.unload_namespace(NAMESPACE)
    assert sorted(cnx.closed_producers) == list(range(8))
    assert rig.broker.topics.topics == {}
    assert namespaces.owned_bundles() == []
    await rig.topic("t0")


async def test_unloading_a_bundle_leaves_the_others(rig: Rig) -> None:
    namespaces = rig.broker.namespaces
    topics = [await rig.topic(f"t{n}") for n in range(12)]
    bundle = await namespaces.bundle_of(topics[0].name)
    await namespaces.unload_bundle(NAMESPACE, bundle)
    assert not namespaces.is_owned(topics[0].name)
    left = rig.broker.topics.topics
    assert left
    for topic in topics:
        is_left = await namespaces.bundle_of(topic.name) != bundle
        assert (str(topic.name) in left) is is_left


async def test_a_namespace_made_anew_is_cut_as_it_says(rig: Rig) -> None:
    namespace = NamespaceName("public", "other")
    resources, namespaces = rig.broker.resources.namespaces, rig.broker.namespaces
    await resources.create_with_bundles(namespace, NamespacePolicies(), 2)
    await namespaces.lookup(namespace.topic("t"))
    assert len((await namespaces.bundles_of(namespace)).names) == 2
    await namespaces.unload_namespace(namespace)
    await resources.delete(namespace)
    await resources.create_with_bundles(namespace, NamespacePolicies(), 8)
    await namespaces.lookup(namespace.topic("t"))
    assert len((await namespaces.bundles_of(namespace)).names) == 8


async def test_metadata_is_written_by_who_has_the_bundle(rig: Rig) -> None:
    """The session is good all the time: another broker may own the topic nevertheless."""
    namespaces, name = rig.broker.namespaces, name_of("t")
    ledger_name = name.managed_ledger_name
    with pytest.raises(ManagedLedgerFencedError, match=ledger_name):
        namespaces.check_owner(ledger_name)
    await namespaces.lookup(name)
    namespaces.check_owner(ledger_name)
    bundle = await namespaces.bundle_of(name)
    await namespaces._ownership.disable(NAMESPACE, bundle)
    namespaces.check_owner(ledger_name)  # what is being closed is written
    await namespaces._ownership.release(NAMESPACE, bundle)
    with pytest.raises(ManagedLedgerFencedError, match=ledger_name):
        namespaces.check_owner(ledger_name)


async def test_a_bundle_is_had_by_its_range_until_it_is_taken_by_another(rig: Rig) -> None:
    """Somebody cuts the namespace otherwise, or it is forgotten how it is cut."""
    namespaces, name = rig.broker.namespaces, name_of("t")
    await namespaces.lookup(name)
    namespaces._on_bundles_changed(NAMESPACE, LocalPolicies(boundaries=equal_boundaries(64)))
    assert not namespaces.is_owned(name)
    namespaces.check_owner(name.managed_ledger_name)
    del namespaces._bundles[NAMESPACE]
    namespaces.check_owner(name.managed_ledger_name)
    for other in (name_of(f"t{number}") for number in range(8)):
        if await namespaces.bundle_of(other) != await namespaces.bundle_of(name):
            with pytest.raises(ManagedLedgerFencedError):
                namespaces.check_owner(other.managed_ledger_name)


async def test_who_gave_a_bundle_up_changes_nothing_of_its_topics(rig: Rig) -> None:
    """Its topics did not close in time: what they write later is not sent."""
    topic = await rig.persistent()
    namespaces = rig.broker.namespaces
    send(await rig.producer(topic, rig.cnx()), 0)
    stored = await rig.metadata.get(ledger_path(topic.name.managed_ledger_name))
    await namespaces._ownership.release(NAMESPACE, await namespaces.bundle_of(topic.name))
    with pytest.raises(ManagedLedgerFencedError):
        await topic.ledger.set_property("written", "late")
    assert await rig.metadata.get(ledger_path(topic.name.managed_ledger_name)) == stored


async def test_after_closing_nothing_is_looked_up(rig: Rig) -> None:
    await rig.broker.namespaces.close()
    with pytest.raises(ServiceNotReadyError):
        await rig.broker.namespaces.lookup(name_of("t"))


class Failing(MemoryMetadataStore):
    """Takes no changes below some paths."""

    refused: tuple[str, ...] = ()

    def _check(self, path: str) -> None:
        if path.startswith(self.refused):
            raise MetadataUnavailableError(f"{path}: not connected")

    async def put(self, path: str, value: bytes, **how: Any) -> int:
        self._check(path)
        return await super().put(path, value, **how)

    async def delete(self, path: str, **how: Any) -> None:
        self._check(path)
        await super().delete(path, **how)


@pytest.mark.parametrize(
    "refused", [paths.OWNERSHIP, f"{ROOT}/public/default/persistent/t"], ids=["owner", "list"]
)
async def test_an_unload_that_has_begun_ends(virtual_clock: VirtualClock, refused: str) -> None:
    store = Failing(virtual_clock)
    async with Rig(virtual_clock, metadata=store) as rig:
        namespaces, topic = rig.broker.namespaces, await rig.persistent()
        send(await rig.producer(topic, rig.cnx()), 0)
        bundle = await namespaces.bundle_of(topic.name)
        store.refused = (refused,)
        with suppress(MetadataUnavailableError):
            await namespaces.unload_bundle(NAMESPACE, bundle)
        assert not namespaces.is_owned(topic.name)
        assert rig.broker.topics.topics == {}
        store.refused = ()
        await asyncio.sleep(5)
        again = await rig.persistent()
        assert again is not topic
        assert again.ledger is not topic.ledger
        send(await rig.producer(again, rig.cnx()), 1)


class Doubted(BundleOwnership):
    """Gets in doubt while a lookup waits for the store."""

    async def acquire(self, *bundle: Any) -> OwnerRecord:
        record = await super().acquire(*bundle)
        self._doubts_count += 1
        return record


async def test_a_lookup_does_not_succeed_once_the_session_is_in_doubt(rig: Rig) -> None:
    namespaces = rig.broker.namespaces
    namespaces._ownership.__class__ = Doubted
    with pytest.raises(ServiceNotReadyError, match="in doubt"):
        await namespaces.lookup(name_of("t"))


class DoubtedWhileRead(MemoryMetadataStore):
    """Tells of a doubt while the boundaries of a bundle are read that was taken a moment ago."""

    def on_sync(self) -> None:
        """Nothing yet."""

    async def sync(self, path: str) -> None:
        await super().sync(path)
        if path == paths.local_policies(NAMESPACE):
            self.on_sync()


async def test_nor_does_it_if_the_doubt_came_after_the_bundle_was_taken(
    virtual_clock: VirtualClock,
) -> None:
    store = DoubtedWhileRead(virtual_clock)
    async with Rig(virtual_clock, metadata=store) as rig:
        namespaces = rig.broker.namespaces
        store.on_sync = lambda: namespaces._ownership._on_session_event(SessionEvent.IN_DOUBT)
        bundle = await namespaces.bundle_of(name_of("t"))
        with pytest.raises(ServiceNotReadyError, match="in doubt"):
            await namespaces.acquire_bundle(NAMESPACE, bundle)
        await namespaces._ownership._validate()
        await namespaces.unload_bundle(NAMESPACE, bundle)
        with pytest.raises(ServiceNotReadyError, match="in doubt"):
            await namespaces.lookup(name_of("t"))
        await namespaces._ownership._validate()
        await namespaces.lookup(name_of("t"))
        assert namespaces.is_owned(name_of("t"))


async def test_no_cursor_is_written_before_it_was_looked_at_who_owns_the_topic(rig: Rig) -> None:
    topic, ownership = await rig.persistent(), rig.broker.namespaces._ownership
    await topic.create_subscription("s", starts_at_earliest=True)
    send(await rig.producer(topic, rig.cnx()), 0)
    await rig.clock.sleep(0.01)
    ownership._doubts_count += 1  # a new session has begun
    cursor = next(iter(topic.ledger.cursors.values()))
    cursor.acknowledge([topic.ledger.last_confirmed_entry])
    path = cursor_path(topic.ledger.name, cursor.name)
    before = await rig.metadata.get(path)
    with pytest.raises(SessionInDoubtError):
        await cursor.close()
    assert await rig.metadata.get(path) == before
    ownership._settled_count += 1


async def test_a_split_bundle_keeps_its_topics_and_their_clients(rig: Rig) -> None:
    namespaces, cnx = rig.broker.namespaces, rig.cnx()
    topics = [await rig.topic(f"t{number}") for number in range(12)]
    bundle = await namespaces.bundle_of(topics[0].name)
    lower, upper = (int(text, 16) for text in bundle.split("_"))
    producer = await rig.producer(topics[0], cnx)
    place = lower + (upper - lower) // 2
    parts = await namespaces.split_bundle(NAMESPACE, bundle, [place])
    assert parts == [f"0x{lower:08x}_0x{place:08x}", f"0x{place:08x}_0x{upper:08x}"]
    assert (NAMESPACE, bundle) not in namespaces.owned_bundles()
    assert await rig.metadata.get(paths.bundle_owner(NAMESPACE, bundle)) is None
    for topic in topics:
        assert namespaces.is_owned(topic.name)
        namespaces.check_owner(topic.name.managed_ledger_name)
        assert rig.broker.topics.loaded(topic.name) is topic
    send(producer, 0)
    assert cnx.closed_producers == []
    stored = await rig.broker.resources.local_policies.get(NAMESPACE)
    assert stored is not None
    assert place in (stored.boundaries or ())
    mine = await namespaces.bundle_of(topics[0].name)
    await namespaces.unload_bundle(NAMESPACE, mine)
    assert rig.broker.topics.loaded(topics[0].name) is None
    assert cnx.closed_producers == [1]


async def test_who_does_not_own_a_bundle_does_not_split_it(rig: Rig) -> None:
    namespaces, name = rig.broker.namespaces, name_of("t")
    bundle = await namespaces.bundle_of(name)
    place = int(bundle[:10], 16) + 1
    with pytest.raises(ServiceNotReadyError, match="not owned"):
        await namespaces.split_bundle(NAMESPACE, bundle, [place])
    with pytest.raises(ValueError, match="not places"):
        await namespaces.split_bundle(NAMESPACE, bundle, [int(bundle[:10], 16)])


async def test_of_two_changes_of_the_bundles_one_fails_and_leaves_no_trace(rig: Rig) -> None:
    namespaces, name = rig.broker.namespaces, name_of("t")
    await namespaces.lookup(name)
    bundle = await namespaces.bundle_of(name)
    known = namespaces._bundles[NAMESPACE]
    await rig.broker.resources.local_policies.update(
        NAMESPACE, lambda policies: policies.replace(boundaries=equal_boundaries(64))
    )
    namespaces._bundles[NAMESPACE] = known  # the news of it has not come yet
    with pytest.raises(ServiceNotReadyError, match="have changed"):
        await namespaces.split_bundle(NAMESPACE, bundle, [int(bundle[:10], 16) + 1])
    assert namespaces.owned_bundles() == [(NAMESPACE, bundle)]


async def test_of_a_bundle_and_its_part_one_is_lost(rig: Rig) -> None:
    """A split that got no answer leaves both; what is kept goes on serving its topics."""
    namespaces, name = rig.broker.namespaces, name_of("t")
    await namespaces.lookup(name)
    bundle = await namespaces.bundle_of(name)
    lost: list[TopicName] = []
    namespaces._lose_bundle = lambda _, is_lost: lost.extend([name] if is_lost(name) else [])
    at = topic_hash(str(name))
    part = f"0x{at:08x}_0x{at + 1:08x}"
    namespaces._parts[NAMESPACE, part] = None
    await namespaces._ownership.acquire(NAMESPACE, part, namespaces.addresses)
    namespaces._ownership._lose((NAMESPACE, part))
    assert not lost
    namespaces._ownership._lose((NAMESPACE, bundle))
    assert lost == [name]


async def test_a_part_is_unloaded_once_it_is_known_that_its_whole_was_split(rig: Rig) -> None:
    namespaces, name = rig.broker.namespaces, name_of("t")
    await namespaces.lookup(name)
    whole, known = await namespaces.bundle_of(name), namespaces._bundles[NAMESPACE]
    lower, upper = (int(text, 16) for text in whole.split("_"))
    parts = await namespaces.split_bundle(NAMESPACE, whole, [(lower + upper) // 2])
    namespaces._bundles[NAMESPACE] = known  # the split got no answer, and no news came
    await namespaces.unload_bundle(NAMESPACE, parts[0])
    await namespaces.unload_bundle(NAMESPACE, parts[1])
    assert not namespaces.is_owned(name)
    assert await namespaces.bundle_of(name) in parts


async def test_a_bundle_that_its_owner_has_split_is_not_taken_whole(rig: Rig) -> None:
    """The news of the split comes after the old owner's record is gone."""
    namespaces, name = rig.broker.namespaces, name_of("t")
    known = await namespaces.bundles_of(NAMESPACE)
    await rig.broker.resources.local_policies.update(
        NAMESPACE, lambda policies: policies.replace(boundaries=equal_boundaries(64))
    )
    namespaces._bundles[NAMESPACE] = known
    with pytest.raises(ServiceNotReadyError, match="was split"):
        await namespaces.lookup(name)
    assert namespaces.owned_bundles() == []
    await namespaces.lookup(name)
    assert namespaces.is_owned(name)
