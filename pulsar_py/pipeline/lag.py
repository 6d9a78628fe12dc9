"""`lag`: who is how far behind, from the statistics of brokers; needs no Spark (edge).

Asks each topic partition of a topic, a namespace, or the whole cluster. With a checkpoint of one of
our streams its offsets are compared with the ends of the topics. Topics that vanish meanwhile are
left out. Ages that statistics don't tell are found by `ages`, where it is known how to read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pulsar_py.admin_client import AdminClient, AdminSettings
from pulsar_py.common.clock import SystemClock
from pulsar_py.common.errors import ConfigurationError, TopicNotFoundError
from pulsar_py.pipeline.lags import Lag, age_of, checkpoint_lag, subscription_lags
from pulsar_py.pipeline.settings import Cluster
from pulsar_py.spark.shared.offsets import StreamOffset


@dataclass(frozen=True, slots=True, kw_only=True)
class LagSettings:
    """Whose lag is asked for; nothing means the whole cluster."""

    admin: AdminSettings
    topics: Sequence[str] = ()
    namespaces: Sequence[str] = ()
    checkpoint: Path | None = None
    """Of a stream that reads topics."""
    cluster: Cluster | None = None
    """Where messages are read for their age; None: only ages that brokers tell."""


def measure_lag(settings: LagSettings) -> list[Lag]:
    """All lags, the largest backlog first.

    Raises:
        ConfigurationError: The checkpoint is none.
        ServiceError, ClientError: The administration does not answer, or says no.
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
    """The lags of one topic partition, with ages where there were none."""
    from pulsar_py.pipeline.ages import oldest_publish_millis  # noqa: PLC0415 - loads the client

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


def checkpoint_offsets(checkpoint: Path) -> list[StreamOffset]:
    """Up to where the newest committed batch of a query has read; one for each topic source.

    Raises:
        ConfigurationError: There is no such batch, or none of its sources reads topics.
    """
    committed = [int(each.name) for each in (checkpoint / "commits").glob("*") if _is_batch(each)]
    if not committed:
        raise ConfigurationError(f"{checkpoint}: no checkpoint with a committed batch")
    text = (checkpoint / "offsets" / str(max(committed))).read_text()
    found = offsets_in(text)
    if not found:
        raise ConfigurationError(f"{checkpoint}: its query reads no topics")
    return found


def _is_batch(path: Path) -> bool:
    return path.name.isdigit()


def offsets_in(text: str) -> list[StreamOffset]:
    """The offsets of topics in a file of Spark's offset log: a version, metadata, then sources.

    Source: OffsetSeqLog in Spark.
    """
    found = []
    for line in text.splitlines()[2:]:
        try:
            parsed = json.loads(line)
        except ValueError:
            continue
        if isinstance(parsed, dict) and "~v" in parsed:
            found.append(StreamOffset.from_json(parsed))
    return found
