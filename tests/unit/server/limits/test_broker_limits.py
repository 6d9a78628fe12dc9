"""Limits that topics share."""

from __future__ import annotations

from pulsar_py.metadata.documents import ResourceGroup
from pulsar_py.server.limits.broker_limits import BrokerLimits
from pulsar_py.testing.clock import VirtualClock


async def test_a_groups_limits_follow_what_is_stored(virtual_clock: VirtualClock) -> None:
    limits = BrokerLimits(virtual_clock)
    group = limits.group("g")
    assert limits.group("g") is group
    assert not group.publish.is_limited
    limits.on_group_changed("g", ResourceGroup({"publishRateInMsgs": 5}))
    assert group.publish.is_limited
    assert not group.dispatch.is_limited
    limits.on_group_changed("g", ResourceGroup({"dispatchRateInBytes": 5}))
    assert not group.publish.is_limited
    assert group.dispatch.is_limited
    limits.on_group_changed("g", None)
    assert not group.dispatch.is_limited
    limits.on_group_changed("unknown", ResourceGroup({"publishRateInMsgs": 5}))
