"""revoking: what was admitted ends with the right to it."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from pulsar_py.common.loops.clock import SystemClock
from pulsar_py.common.loops.tasks import TaskOwner
from pulsar_py.common.names import NamespaceName, TopicName
from pulsar_py.metadata.documents import NamespacePolicies, TenantInfo
from pulsar_py.metadata.memory_store import MemoryMetadataStore
from pulsar_py.metadata.resources import Resources
from pulsar_py.server.connection.revoking import Revoking
from pulsar_py.server.security.audit import Audit
from pulsar_py.server.security.authorization import AuthorizationSettings, PulsarAuthorization

TOPIC = TopicName.parse("persistent://t/n/a")
NAMESPACE = NamespaceName("t", "n")


class Held:
    """A producer or consumer."""

    def __init__(self) -> None:
        self.topic = SimpleNamespace(name=TOPIC)
        self.subscription = SimpleNamespace(name="s")
        self.is_there = True

    def disconnect(self) -> None:
        self.is_there = False


def grants(**roles: list[str]) -> NamespacePolicies:
    return NamespacePolicies(auth_policies={"namespace_auth": roles})


@pytest.mark.parametrize(
    ("left", "producer_stays", "consumer_stays"),
    [(["produce", "consume"], True, True), (["produce"], True, False), (["consume"], False, True)],
)
async def test_only_what_has_no_right_any_more_goes(
    left: list[str], *, producer_stays: bool, consumer_stays: bool
) -> None:
    store = MemoryMetadataStore(SystemClock())
    resources = Resources(store, store)
    await resources.tenants.create("t", TenantInfo(admin_roles=()))
    await resources.namespaces.create(NAMESPACE, grants(me=["produce", "consume"]))
    producer, consumer = Held(), Held()
    cnx: Any = SimpleNamespace(
        role="me",
        original_principal=None,
        producers={1: producer},
        consumers={1: consumer},
        consumer_topics={1: consumer.topic},
    )
    tasks = TaskOwner("test")
    rules = PulsarAuthorization(resources, AuthorizationSettings)
    revoking = Revoking(rules, resources, lambda: [cnx], tasks, Audit(SystemClock()))
    revoking.start()
    await resources.namespaces.update(NAMESPACE, lambda _: grants(me=left, other=["produce"]))
    for _ in range(50):
        await asyncio.sleep(0)
    revoking.close()
    assert (producer.is_there, consumer.is_there) == (producer_stays, consumer_stays)
    await tasks.close()
    await resources.close()
