"""refused_topics: what is not served, with its reason, and that nothing is written then."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator

import pytest

from pulsar_py.common.errors import NotAllowedError, PersistenceError
from pulsar_py.common.position import Position
from pulsar_py.metadata import paths
from pulsar_py.proto.MLDataFormats_pb2 import ManagedLedgerInfo
from pulsar_py.proto.PulsarMarkers_pb2 import MarkerType
from pulsar_py.server.dispatch.subscribe_request import SubscriptionType
from pulsar_py.server.topics.refused_topics import REASONS
from pulsar_py.testing.clock import VirtualClock
from tests.unit.admin.metrics.metric_pages import by, page_text, parsed
from tests.unit.server.topics.rig import NAMESPACE, Rig, entry, name_of, subscribe_request

RECORD = paths.managed_ledger(name_of("t").managed_ledger_name)


@pytest.fixture
async def clustered() -> AsyncIterator[Rig]:
    async with Rig(VirtualClock(), is_of_cluster=True) as rig:
        yield rig


def record(**changes: object) -> bytes:
    info = ManagedLedgerInfo()
    ledger = info.ledgerInfo.add(ledgerId=70, entries=1, size=1, timestamp=9)
    if changes.get("offloaded"):
        ledger.offloadContext.complete = True
    for key, value in changes.get("properties", {}).items():  # type: ignore[attr-defined]
        info.properties.add(key=key, value=value)
    return info.SerializeToString()


async def change(rig: Rig, path: str, **members: object) -> None:
    found = await rig.metadata.get(path)
    document = json.loads(found.value) if found is not None and found.value else {}
    await rig.metadata.put(path, json.dumps({**document, **members}).encode())


@pytest.mark.metric("pulsar_py_refused_topics_total")
@pytest.mark.parametrize(
    ("changes", "words", "reason"),
    [
        ({"offloaded": True}, "its ledger 70 is in tiered storage", "offloaded"),
        (
            {"properties": {"PULSAR.SHADOW_SOURCE": "persistent://g/n/src"}},
            "it is a shadow of persistent://g/n/src",
            "shadow",
        ),
        ({"properties": {"migrated": "true"}}, "it was migrated", "migrated"),
    ],
)
async def test_a_topic_whose_record_says_so_is_refused_and_stays_as_it_is(
    clustered: Rig, changes: dict[str, object], words: str, reason: str
) -> None:
    await clustered.metadata.put(RECORD, record(**changes))
    with pytest.raises(NotAllowedError, match=words):
        await clustered.topic("t")
    stored = await clustered.metadata.get(RECORD)
    assert stored is not None
    assert (stored.value, stored.version) == (record(**changes), 0)
    assert clustered.broker.refused_topics is not None
    assert clustered.broker.refused_topics.counts == {reason: 1}
    found = by(
        parsed(await page_text(clustered.broker)), "pulsar_py_refused_topics_total", "reason"
    )
    assert found == {each: each == reason for each in REASONS}
    assert reason in REASONS


@pytest.mark.parametrize(
    ("path", "members", "words", "reason"),
    [
        (
            paths.namespace_policies(NAMESPACE),
            {"replication_clusters": ["standalone", "other", "third"]},
            "it is replicated to other, third",
            "replicated",
        ),
        (
            paths.topic_policies(name_of("t")),
            {"replicationClusters": ["other"]},
            "it is replicated to other",
            "replicated",
        ),
        (
            paths.topic_policies(name_of("t")),
            {"shadowTopics": ["persistent://g/n/s"]},
            "it has shadow topics",
            "shadow",
        ),
        (
            paths.namespace_policies(NAMESPACE),
            {"migrated": True},
            "its namespace was migrated",
            "migrated",
        ),
        (paths.local_policies(NAMESPACE), {"migrated": True}, "was migrated", "migrated"),
    ],
)
async def test_a_topic_whose_policies_say_so_is_refused_and_not_made(
    clustered: Rig, path: str, members: dict[str, object], words: str, reason: str
) -> None:
    await change(clustered, path, **members)
    with pytest.raises(NotAllowedError, match=words):
        await clustered.topic("t")
    assert await clustered.metadata.get(RECORD) is None
    assert clustered.broker.refused_topics is not None
    assert clustered.broker.refused_topics.counts == {reason: 1}


async def test_what_is_harmless_is_served(clustered: Rig) -> None:
    await change(
        clustered,
        paths.namespace_policies(NAMESPACE),
        replication_clusters=["standalone"],
        migrated=False,
        more={"unknown": 1},
    )
    topic = await clustered.persistent()
    assert topic.ledger.properties == {}
    assert clustered.broker.refused_topics is not None
    assert not clustered.broker.refused_topics.counts
    found = await clustered.metadata.get(paths.namespace_policies(NAMESPACE))
    assert found is not None
    assert json.loads(found.value)["more"] == {"unknown": 1}


async def test_a_record_that_can_not_be_read_is_an_error_of_storage(clustered: Rig) -> None:
    await clustered.metadata.put(RECORD, b"\xff\xff")
    with pytest.raises(PersistenceError, match="can't be loaded"):
        await clustered.topic("t")


async def test_a_standalone_broker_asks_for_none_of_it() -> None:
    async with Rig(VirtualClock()) as rig:
        await change(rig, paths.namespace_policies(NAMESPACE), replication_clusters=["other"])
        await rig.topic("t")
        assert rig.broker.refused_topics is None


TRANSACTIONAL = {
    "message": {"txnid_most_bits": 1, "txnid_least_bits": 2},
    "commit": {"marker_type": MarkerType.TXN_COMMIT},
    "abort": {"marker_type": MarkerType.TXN_ABORT},
}


@pytest.mark.parametrize("kind", TRANSACTIONAL)
async def test_nothing_passes_the_first_entry_of_a_transaction(
    clustered: Rig, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither it nor what follows in the same read or later, on any type of subscription."""
    caplog.set_level(logging.ERROR)
    topic = await clustered.persistent()
    cnxs = [clustered.cnx() for _ in SubscriptionType]
    subscriptions = list(zip(cnxs, SubscriptionType, strict=True))
    positions = [
        await topic.ledger.append_and_wait(data)
        for data in (entry(0), entry(1), entry(2, **TRANSACTIONAL[kind]), entry(3))
    ]
    for cnx, each in subscriptions:
        request = subscribe_request(cnx, each.name, each, starts_at_earliest=True)
        (await topic.subscribe(request)).flow(10)
    await clustered.clock.sleep(2)
    await topic.ledger.append_and_wait(entry(4))
    await clustered.clock.sleep(2)
    came = [[line for line in cnx.take() if "message" in line] for cnx in cnxs]
    assert came == [["message 0", "message 1"]] * len(cnxs)
    assert topic.max_read_position() == Position(positions[2].ledger_id, positions[2].entry_id - 1)
    for subscription in topic.subscriptions.values():
        assert subscription.cursor.mark_delete_position < positions[0]  # type: ignore[attr-defined]
    assert clustered.broker.refused_topics is not None
    assert clustered.broker.refused_topics.counts == {"transactions": 1}
    assert [each.message for each in caplog.records] == [
        "topic is not read further: it has transactions"
    ]


async def test_other_markers_are_dropped_as_before(clustered: Rig) -> None:
    topic, cnx = await clustered.persistent(), clustered.cnx()
    marker = entry(0, marker_type=MarkerType.REPLICATED_SUBSCRIPTION_SNAPSHOT)
    for data in (marker, entry(1)):
        await topic.ledger.append_and_wait(data)
    (await topic.subscribe(subscribe_request(cnx, starts_at_earliest=True))).flow(10)
    await clustered.clock.sleep(1)
    assert [line for line in cnx.take() if "message" in line] == ["message 1"]
