"""`BrokerLimits`: the rates that all topics of a broker share, and those of resource groups.

A resource group's rates hold for each broker by itself. Topics ask for a group by name; its limits
follow what is stored, and are off while there is no such group.

Source: BrokerService's publish and dispatch limiters, ResourceGroupService in Pulsar's broker.
"""

from __future__ import annotations

from pulsar_py.common.loops.clock import Clock
from pulsar_py.common.loops.rate_limiter import RateLimiter
from pulsar_py.metadata.documents import ResourceGroup


class GroupLimits:
    """The limits that the topics of one resource group share."""

    def __init__(self, clock: Clock, name: str) -> None:
        scope = f"resource group {name}"
        self.publish = RateLimiter(clock, scope)
        self.dispatch = RateLimiter(clock, scope)

    def apply(self, group: ResourceGroup | None) -> None:
        """Use the rates of the stored group; None removes the limits."""
        rates = group or ResourceGroup()
        self.publish.set_limits(
            rates.publish_messages_per_second or 0, rates.publish_bytes_per_second or 0
        )
        self.dispatch.set_limits(
            rates.dispatch_messages_per_second or 0, rates.dispatch_bytes_per_second or 0
        )


class BrokerLimits:
    """The shared limits of one broker, which owns it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.publish = RateLimiter(clock, "broker")
        self.dispatch = RateLimiter(clock, "broker")
        self._groups: dict[str, GroupLimits] = {}  # those that topics of this broker are in

    def group(self, name: str) -> GroupLimits:
        """The limits of a resource group; the caller sees to it that `apply` is called."""
        return self._groups.setdefault(name, GroupLimits(self._clock, name))

    def on_group_changed(self, name: str, group: ResourceGroup | None) -> None:
        """Use the changed rates of a group that topics are in."""
        if name in self._groups:
            self._groups[name].apply(group)
