"""revoking: what was admitted ends with the right to it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from pulsar_py.common.errors import AuthorizationError
from pulsar_py.common.loops.clock import SystemClock
from pulsar_py.common.loops.tasks import TaskOwner
from pulsar_py.common.names import NamespaceName, TopicName
from pulsar_py.metadata.documents import NamespacePolicies, TenantInfo
from pulsar_py.metadata.memory_store import MemoryMetadataStore
from pulsar_py.metadata.resources import Resources
from pulsar_py.server.handlers.revoking import Revoking
from pulsar_py.server.security.actions import Action
from pulsar_py.server.security.audit import Audit
from pulsar_py.server.security.authorization import (
    AccessTarget,
    AuthorizationSettings,
    Caller,
    PulsarAuthorization,
)

TOPIC = TopicName.parse("persistent://t/n/a")
NAMESPACE = NamespaceName("t", "n")


class Held:
    """A producer or consumer."""

    def __init__(self) -> None:
        self.topic = SimpleNamespace(name=TOPIC)
        self.subscription = SimpleNamespace(name="s")
        self.namespace = NAMESPACE
        self.is_there = True
        self.answers: list[object] = []
        self.request = SimpleNamespace(on_ready=self.answers.append)

    def disconnect(self) -> None:
        self.is_there = False

    on_connection_lost = close = disconnect


def connection(**parts: Any) -> Any:
    """One of the role `me`."""
    nothing: dict[int, Any] = {}
    empty = dict.fromkeys(
        ("producers", "pending_producers", "consumers", "consumer_topics", "watchers"), nothing
    )
    parts.setdefault("on_right_lost", None)
    return SimpleNamespace(**{"role": "me", "original_principal": None, **empty, **parts})


@asynccontextmanager
async def withdrawn(cnx: Any, left: list[str]) -> AsyncIterator[None]:
    """After `me`, who had all rights, was left with these."""
    store = MemoryMetadataStore(SystemClock())
    resources = Resources(store, store)
    await resources.tenants.create("t", TenantInfo(admin_roles=()))
    await resources.namespaces.create(NAMESPACE, grants(me=["produce", "consume"]))
    tasks = TaskOwner("test")
    rules = PulsarAuthorization(resources, AuthorizationSettings)
    revoking = Revoking(rules, resources, lambda: [cnx], tasks, Audit(SystemClock()))
    revoking.start()
    await resources.namespaces.update(NAMESPACE, lambda _: grants(me=left, other=["produce"]))
    for _ in range(50):
        await asyncio.sleep(0)
    revoking.close()
    yield
    await tasks.close()
    await resources.close()


def grants(**roles: list[str]) -> NamespacePolicies:
    return NamespacePolicies(auth_policies={"namespace_auth": roles})


@pytest.mark.parametrize(
    ("left", "producer_stays", "consumer_stays"),
    [(["produce", "consume"], True, True), (["produce"], True, False), (["consume"], False, True)],
)
async def test_only_what_has_no_right_any_more_goes(
    left: list[str], *, producer_stays: bool, consumer_stays: bool
) -> None:
    producer, consumer = Held(), Held()
    cnx = connection(
        producers={1: producer}, consumers={1: consumer}, consumer_topics={1: consumer.topic}
    )
    async with withdrawn(cnx, left):
        assert (producer.is_there, consumer.is_there) == (producer_stays, consumer_stays)


@pytest.mark.parametrize(
    ("left", "expected"), [(["produce", "consume"], 0), (["produce"], 1), ([], 2)]
)
async def test_whoever_is_behind_a_connection_is_told(left: list[str], expected: int) -> None:
    told: list[None] = []
    consumer = Held()
    cnx = connection(
        producers={1: Held()},
        consumers={1: consumer},
        consumer_topics={1: consumer.topic},
        on_right_lost=lambda: told.append(None),
    )
    async with withdrawn(cnx, left):
        assert len(told) == expected


async def test_many_are_checked_while_others_have_their_turns() -> None:
    """None is left out for it, either."""
    count, turns = 2000, 0
    cnxs = [connection(producers={1: Held()}) for _ in range(count)]
    store = MemoryMetadataStore(SystemClock())
    resources, tasks = Resources(store, store), TaskOwner("test")
    rules = PulsarAuthorization(resources, AuthorizationSettings)
    revoking = Revoking(rules, resources, lambda: cnxs, tasks, Audit(SystemClock()))
    checked = tasks.spawn(revoking._check_all(lambda _: True), "checks")
    while not checked.done():
        turns += 1
        await asyncio.sleep(0)
    await checked
    assert not any(each.producers[1].is_there for each in cnxs)
    assert turns >= count / 200
    await tasks.close()
    await resources.close()


class OwnRules(PulsarAuthorization):
    """Rules that change by themselves."""

    may_produce = True
    check: Callable[[], None]

    def when_rights_change(self, check: Callable[[], None]) -> None:
        self.check = check

    async def allows(self, caller: Caller, action: Action, target: AccessTarget) -> bool:
        return self.may_produce or action is not Action.PRODUCE


async def test_rules_of_users_own_say_when_they_change() -> None:
    store = MemoryMetadataStore(SystemClock())
    resources, tasks = Resources(store, store), TaskOwner("test")
    rules, producer = OwnRules(resources, AuthorizationSettings), Held()
    cnx = connection(producers={1: producer})
    revoking = Revoking(rules, resources, lambda: [cnx], tasks, Audit(SystemClock()))
    revoking.start()
    for may, expected in ((True, True), (False, False)):
        rules.may_produce = may
        rules.check()
        await tasks.drain()
        assert producer.is_there is expected
    revoking.close()
    await tasks.close()
    await resources.close()


@pytest.mark.parametrize(("left", "stays"), [(["produce"], True), (["consume"], False)])
async def test_who_waits_to_be_exclusive_waits_no_more(left: list[str], *, stays: bool) -> None:
    waiting, being_made = Held(), SimpleNamespace(producer=None)
    cnx = connection(pending_producers={1: SimpleNamespace(producer=waiting), 2: being_made})
    async with withdrawn(cnx, left):
        assert waiting.is_there == stays
        assert [type(each) for each in waiting.answers] == ([] if stays else [AuthorizationError])


@pytest.mark.parametrize(("left", "stays"), [(["produce"], True), ([], False)])
async def test_a_watch_of_topics_ends_with_the_right_to_their_names(
    left: list[str], *, stays: bool
) -> None:
    watcher = Held()
    cnx = connection(watchers={7: watcher})
    async with withdrawn(cnx, left):
        assert watcher.is_there == stays
        assert (7 in cnx.watchers) == stays
