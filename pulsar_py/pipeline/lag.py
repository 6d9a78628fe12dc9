"""The `lag` pipeline: measures the lags of subscriptions and queries, without Spark (edge).

It asks the brokers for the statistics of each topic partition of a topic, a namespace or the whole
cluster. For a query it compares the offsets of its checkpoint with the ends of its topics. Topics
that are deleted meanwhile are left out. `measuring.ages` finds the ages that statistics don't have.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pulsar_py.admin_client import AdminClient, AdminSettings
from pulsar_py.common.errors import TopicNotFoundError
from pulsar_py.common.loops.clock import SystemClock
from pulsar_py.pipeline.measuring.lags import Lag, age_of, checkpoint_lag, subscription_lags
from pulsar_py.pipeline.resuming.offsets import checkpoint_offsets
from pulsar_py.pipeline.settings.topics import Cluster


@dataclass(frozen=True, slots=True, kw_only=True)
class LagSettings:
    """The topics, namespaces or checkpoint to measure; the whole cluster if none is given."""

    admin: AdminSettings
    topics: Sequence[str] = ()
    namespaces: Sequence[str] = ()
    checkpoint: Path | None = None
    """The checkpoint of a query that reads topics."""
    cluster: Cluster | None = None
    """The cluster to read messages from for their ages; None for ages in statistics alone."""


def measure_lag(settings: LagSettings) -> list[Lag]:
    """The lags, the largest backlog first.

    Raises:
        ConfigurationError: The checkpoint has no committed batch, or its query reads no topics.
        ServiceError, ClientError: The admin API does not answer, or refuses.
    """
    with AdminClient(settings.admin) as admin:
        lags = list(
            _checkpoint_lags(admin, settings.checkpoint)
            if settings.checkpoint is not None
            else _subscription_lags(admin, settings)
        )
    return sorted(lags, key=lambda lag: (-lag.backlog_entries, lag.topic, lag.name))


def _subscription_lags(admin: AdminClient, settings: LagSettings) -> Iterator[Lag]:
    now_millis = SystemClock().wall_time_millis()
    for topic in _topics_of(admin, settings):
        try:
            lags = subscription_lags(topic, admin.stats(topic), now_millis)
            if settings.cluster is not None and any(each.age_seconds is None for each in lags):
                lags = _with_ages(admin, settings.cluster, lags, now_millis)
            yield from lags
        except TopicNotFoundError:
            if settings.topics:
                raise


def _with_ages(
    admin: AdminClient, cluster: Cluster, lags: Sequence[Lag], now_millis: int
) -> list[Lag]:
    """The lags of one topic partition, with missing ages read from its messages."""
    from pulsar_py.pipeline.measuring.ages import (  # noqa: PLC0415 - loads the client
        oldest_publish_millis,
    )

    acknowledged = admin.internal_stats(lags[0].topic).mark_delete_positions
    places = {
        each.name: (each.topic, acknowledged[each.name])
        for each in lags
        if each.age_seconds is None and each.name in acknowledged
    }
    found = oldest_publish_millis(cluster, dict.fromkeys(places.values()))
    ages = {
        name: age_of(found[place], now_millis) for name, place in places.items() if place in found
    }
    return [
        replace(each, age_seconds=ages[each.name]) if each.name in ages else each for each in lags
    ]


def _topics_of(admin: AdminClient, settings: LagSettings) -> Iterator[str]:
    for topic in settings.topics:
        yield from admin.partitions_of(topic)
    namespaces: list[str] = list(settings.namespaces)
    if not settings.topics and not namespaces:
        namespaces = [each for tenant in admin.tenants() for each in admin.namespaces(tenant)]
    for namespace in namespaces:
        yield from admin.topics(namespace)


def _checkpoint_lags(admin: AdminClient, checkpoint: Path) -> Iterator[Lag]:
    for offset in checkpoint_offsets(checkpoint):
        for topic, position in sorted(offset.positions.items()):
            stats = admin.internal_stats(topic)
            yield checkpoint_lag(topic, checkpoint.name, position, stats)
