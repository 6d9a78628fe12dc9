"""REST resource of load balancing: the brokers of a cluster, their bundles and their load.

A call of our own: consoles and operators read it.

    GET /admin/v2/brokers/load
    {brokerId, leaderId, isLeading, isLeaving, session {isGood, doubts}, heldLookups,
     loadedTopics, loadingTopics,
     brokers [{brokerId, version, started, updated, usage …, bundles, topics, sessions, rates}],
     bundles [{bundle, since}], changes [{at, bundle, change, reason}],
     balancing [{at, kind, bundle, broker, destination, reason, error}]}

Times are milliseconds. `balancing` is what this broker did as leader: ask the leader for all of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pulsar_py.admin.http_messages import Request, Response, json_response
from pulsar_py.admin.resources.topic_access import broker_id_of
from pulsar_py.admin.router import Route, get
from pulsar_py.common.errors import ServiceNotReadyError
from pulsar_py.server.broker import BrokerService
from pulsar_py.server.load.balancer import Balancer, LoadEvent
from pulsar_py.server.load.broker_report import BrokerReport
from pulsar_py.server.load.shedding import throughput_of
from pulsar_py.server.namespaces.ownership_log import OwnershipChange
from pulsar_py.server.security.actions import Action

Json = dict[str, Any]  # Any: JSON


class ClusterLoadView:
    """Shows the cluster as one broker sees it."""

    def __init__(self, broker: BrokerService) -> None:
        self._broker = broker

    def routes(self) -> Iterable[Route]:
        """The routes of this resource."""
        return (get("/admin/v2/brokers/load", self.load, Action.READ_BROKERS),)

    async def load(self, request: Request) -> Response:  # noqa: ARG002
        """Return the cluster's load; a standalone broker reports itself alone."""
        broker = self._broker
        membership, namespaces = broker.membership, broker.namespaces
        is_joined = membership is not None and membership.is_joined
        balancer = None if broker.cluster_load is None else broker.cluster_load.balancer
        reports = list(membership.directory.brokers.values()) if membership and is_joined else []
        return json_response(
            {
                "brokerId": broker_id_of(broker),
                "leaderId": membership.leader_id if membership and is_joined else None,
                "isLeading": bool(membership and is_joined and membership.is_leader),
                "isLeaving": bool(membership and membership.is_leaving),
                "session": {"isGood": _is_good(broker), "doubts": namespaces.doubts_count},
                "heldLookups": namespaces.held_lookups_count,
                "loadedTopics": len(broker.topics.topics),
                "loadingTopics": broker.topics.loads_count,
                "brokers": [_broker_json(each, balancer) for each in reports],
                "bundles": [
                    {"bundle": bundle, "since": since}
                    for bundle, since in sorted(namespaces.log.since_millis.items())
                ],
                "changes": [_change_json(each) for each in namespaces.log.changes],
                "balancing": [_event_json(each) for each in balancer.events] if balancer else [],
            }
        )


def _is_good(broker: BrokerService) -> bool:
    try:
        broker.namespaces.check_session()
    except ServiceNotReadyError:
        return False
    return True


def _broker_json(report: BrokerReport, balancer: Balancer | None) -> Json:
    stats = report.bundles.values()
    return {
        "brokerId": report.broker_id,
        "url": report.pulsar_url or report.pulsar_url_tls,
        "webUrl": report.web_url or report.web_url_tls,
        "webUrlTls": report.web_url_tls,
        "started": report.start_millis,
        "updated": report.update_millis,
        "usage": report.usage,
        "smoothedUsage": None if balancer is None else balancer.usage_of(report.broker_id),
        "cpu": report.cpu.share,
        "memory": report.memory.share,
        "bandwidthIn": report.bandwidth_in.share,
        "bandwidthOut": report.bandwidth_out.share,
        "bundles": sorted(report.bundles),
        "topics": report.topics_count,
        "producers": sum(each.producers_count for each in stats),
        "consumers": sum(each.consumers_count for each in stats),
        "msgRate": report.messages_rate,
        "throughput": throughput_of(report),
    }


def _change_json(change: OwnershipChange) -> Json:
    return {
        "at": change.at_millis,
        "bundle": change.bundle,
        "change": "gained" if change.is_gain else "lost",
        "reason": change.reason,
    }


def _event_json(event: LoadEvent) -> Json:
    return {
        "at": event.at_millis,
        "kind": event.kind,
        "bundle": event.bundle,
        "broker": event.broker_id,
        "destination": event.destination,
        "reason": event.reason,
        "error": event.error,
    }
