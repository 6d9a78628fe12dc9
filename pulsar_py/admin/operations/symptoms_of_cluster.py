"""Finds symptoms of a broker in a cluster: its session, ownership, the other brokers (edge).

The codes stand in `symptoms`.
"""

from __future__ import annotations

from collections.abc import Iterator

from pulsar_py.admin.operations.symptom import Symptom, Urgency
from pulsar_py.common.errors import ServiceNotReadyError
from pulsar_py.server.broker import BrokerService
from pulsar_py.server.load.cluster_membership import ClusterMembership

__all__ = ["cluster_symptoms"]


async def cluster_symptoms(broker: BrokerService) -> list[Symptom]:
    """The symptoms of a broker in a cluster; none for a standalone broker."""
    membership = broker.membership
    if membership is None or not membership.is_joined:
        return []
    found = [*_of_session(broker), *_of_members(broker, membership), *_of_balancing(broker)]
    for broker_id, report in sorted(membership.directory.brokers.items()):
        if broker_id != membership.own.broker_id and not await membership.is_reachable(report):
            found.append(
                Symptom(
                    "BROKER_UNREACHABLE",
                    Urgency.ERROR,
                    broker_id,
                    f"{broker_id} is registered with {len(report.bundles)} bundles, and accepts no "
                    "connections from here.",
                    "If it was killed, others take its bundles when its session ends; if it runs, "
                    "look at the network, or stop it so that it hands its bundles over.",
                )
            )
    return found


def _of_session(broker: BrokerService) -> Iterator[Symptom]:
    try:
        broker.namespaces.check_session()
    except ServiceNotReadyError as error:
        yield Symptom(
            "SESSION_IN_DOUBT",
            Urgency.ERROR,
            "metadata session",
            f"{error}.",
            "Look at ZooKeeper and the network to it; connected clients go on meanwhile.",
        )


def _of_members(broker: BrokerService, membership: ClusterMembership) -> Iterator[Symptom]:
    own_id, brokers = membership.own.broker_id, membership.directory.brokers
    if membership.is_leaving:
        yield Symptom(
            "LEAVING",
            Urgency.WARNING,
            own_id,
            f"{own_id} takes no bundle any more: it was drained, or another process has its id.",
            "Start it anew when it shall serve again.",
        )
    if membership.leader_id is None or membership.leader_id not in brokers:
        yield Symptom(
            "NO_LEADER",
            Urgency.WARNING,
            "cluster",
            "No broker leads the cluster: each chooses by itself who takes a bundle, and no load "
            "is balanced.",
            "It should pass within a session; if not, look at ZooKeeper's /loadbalance/leader.",
        )
    if len(brokers) == 1:
        yield Symptom(
            "ALONE_IN_CLUSTER",
            Urgency.NOTICE,
            own_id,
            f"{own_id} is the only broker of its cluster: nobody takes over if it ends.",
            "Start another one with the same settings and another address.",
        )
    limit = broker.config.loadBalancerBrokerOverloadedThresholdPercentage / 100
    for broker_id, report in sorted(brokers.items()):
        if report.usage >= limit:
            yield Symptom(
                "BROKER_BUSY",
                Urgency.WARNING,
                broker_id,
                f"{broker_id} uses {report.usage:.0%} of its busiest resource.",
                "Add brokers, or bundles to namespaces whose load is in few of them; "
                "loadBalancerBundleUnloadMinThroughputThreshold may keep bundles from moving.",
            )


def _of_balancing(broker: BrokerService) -> Iterator[Symptom]:
    events = () if broker.cluster_load is None else broker.cluster_load.balancer.events
    last = events[-1] if events else None
    if last is not None and last.error is not None:
        what = "moved" if last.kind == "moved" else "split"
        yield Symptom(
            "NOT_BALANCED",
            Urgency.WARNING,
            last.bundle,
            f"{last.bundle} of {last.broker_id} could not be {what} ({last.reason}): {last.error}",
            "The leader tries again later; brokerClientAuthenticationPlugin says which role it has "
            "at other brokers.",
        )
