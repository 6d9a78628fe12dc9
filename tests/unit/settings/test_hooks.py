"""Settings of users' classes: each test sets some, and sees what consumers get."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.metadata.documents import NamespacePolicies, TopicPolicies
from pulsar_py.server.hooks.contained import HookErrors
from pulsar_py.server.hooks.installed_filters import InstalledFilter, InstalledFilters
from pulsar_py.testing.clock import VirtualClock
from tests.dispatch_parts import message, received
from tests.unit.server.topics.rig import NAMESPACE, FakeCnx, Rig, entry, name_of, send
from tests.unit.server.topics.rig import subscribe_request as request
from tests.unit.settings.parts import broker, dispatching

NOTHING = "tests.hook_classes.NothingPasses"
BY_PAYLOAD = "tests.hook_classes.ByPayload"
FILE = """
from pulsar_py.server.hooks import EntryFilter, FilterResult

class Mine(EntryFilter):
    def filter_entry(self, entry, context):
        return FilterResult.REJECT
"""


def filters_of(clock: VirtualClock, *names: str) -> Sequence[InstalledFilter]:
    return InstalledFilters(HookErrors(clock), names=names, directory="").find(names)


async def delivered(rig: Rig, *, domain: str = "persistent") -> int:
    """How many of two messages a new consumer gets."""
    topic = await rig.topic(name_of("t", domain=domain))
    cnx: FakeCnx = rig.cnx()
    consumer = await topic.subscribe(request(cnx, "s", starts_at_earliest=True))
    consumer.flow(10)
    producer = await rig.producer(topic, rig.cnx())
    for number in range(2):
        send(producer, number, entry(1))
    await rig.clock.sleep(0.05)
    count = sum(line.startswith("message") for line in cnx.take())
    consumer.close()
    producer.disconnect()
    return count


async def namespace_policy(rig: Rig, name: str) -> None:
    policy = {"entryFilters": {"entryFilterNames": name}}
    await rig.broker.resources.namespaces.update(
        NAMESPACE, lambda known: NamespacePolicies({**known.json, **policy})
    )
    await rig.clock.sleep(0.01)


async def topic_policy(rig: Rig, name: str) -> None:
    policy = TopicPolicies({"entryFilters": {"entryFilterNames": name}})
    await rig.broker.resources.topic_policies.update_or_create(name_of("t"), lambda _: policy)
    await rig.clock.sleep(0.01)


@pytest.mark.setting("entryFilterNames")
@pytest.mark.parametrize("domain", ["persistent", "non-persistent"])
async def test_filters_of_all_topics(virtual_clock: VirtualClock, domain: str) -> None:
    async with broker(virtual_clock, entryFilterNames=(NOTHING,)) as rig:
        assert await delivered(rig, domain=domain) == 0


async def test_a_broker_does_not_start_without_its_filters(virtual_clock: VirtualClock) -> None:
    with pytest.raises(ConfigurationError, match="NoFilter"):
        async with broker(virtual_clock, entryFilterNames=("tests.hook_classes.NoFilter",)):
            pass


@pytest.mark.setting("allowOverrideEntryFilters")
async def test_policies_replace_the_filters_of_the_broker(virtual_clock: VirtualClock) -> None:
    names = (NOTHING, BY_PAYLOAD)
    async with broker(virtual_clock, entryFilterNames=names) as rig:
        await namespace_policy(rig, BY_PAYLOAD)
        assert await delivered(rig) == 0
    async with broker(virtual_clock, entryFilterNames=names, allowOverrideEntryFilters=True) as rig:
        assert await delivered(rig) == 0
        await namespace_policy(rig, BY_PAYLOAD)
        assert await delivered(rig) == 2
        await topic_policy(rig, NOTHING)
        assert await delivered(rig) == 0


@pytest.mark.setting("entryFiltersDirectory")
async def test_filters_for_policies_lie_in_a_directory(
    virtual_clock: VirtualClock, tmp_path: Path
) -> None:
    (tmp_path / "mine.py").write_text(FILE)
    settings = {"entryFiltersDirectory": str(tmp_path), "allowOverrideEntryFilters": True}
    async with broker(virtual_clock, **settings) as rig:
        await namespace_policy(rig, "mine.Mine")
        assert await delivered(rig) == 0
        await namespace_policy(rig, NOTHING)  # not in the directory
        assert await delivered(rig) == 2


@pytest.mark.setting("dispatcherEntryFilterRescheduledMessageDelay")
async def test_when_an_entry_that_was_put_off_comes(virtual_clock: VirtualClock) -> None:
    async with dispatching(
        virtual_clock, dispatcherEntryFilterRescheduledMessageDelay=200
    ) as topic:
        topic.filters = filters_of(virtual_clock, BY_PAYLOAD)
        await topic.publish(message(b"later"))
        consumer = await topic.consume(permits=10)
        await virtual_clock.sleep(0.19)
        assert received(consumer) == []
        await virtual_clock.sleep(0.02)
        assert received(consumer) == [0]
