"""The copies by which topics are served, as a log says."""

from __future__ import annotations

from pulsar_py.metadata.documents import TopicPolicies
from pulsar_py.server.change_events.event_decoder import LoggedEvent
from pulsar_py.server.change_events.policy_copies import PolicyCopies, without_event
from pulsar_py.server.policies.policy_events import PolicyEvent
from tests.unit.server.change_events.event_parts import A, B, copies, copy, gone, local
from tests.unit.server.topics.rig import NAMESPACE, Rig

EVENT = local(maxProducerPerTopic=1)


async def test_an_event_is_written_and_removed(rig: Rig) -> None:
    made = PolicyCopies(NAMESPACE, rig.broker.resources)
    await made.apply(EVENT)
    await made.apply(PolicyEvent(B, is_global=True, document={"maxProducerPerTopic": 2}))
    assert await copy(rig) == {"maxProducerPerTopic": 1}
    assert await copy(rig, B, is_global=True) == {"maxProducerPerTopic": 2}
    assert await made.known() == [(False, A), (True, B)]
    await made.apply(gone())
    await made.apply(gone())  # which is fine
    assert await copy(rig) is None


async def test_local_copies_without_event_go_and_newer_global_ones_stay(rig: Rig) -> None:
    made = PolicyCopies(NAMESPACE, rig.broker.resources)
    policies = TopicPolicies({"maxProducerPerTopic": 3})
    for is_global in (False, True):
        await copies(rig, is_global=is_global).create(A, policies)
    old = PolicyEvent(A, is_global=True, document={})
    pending = {old.key: LoggedEvent(old, 0)}
    known = await made.known()
    assert without_event(known, pending) == [(False, A)]
    await made.drop_outdated(known, pending)
    assert pending == {}
    assert await copy(rig) is None
    assert await copy(rig, is_global=True) == {"maxProducerPerTopic": 3}
