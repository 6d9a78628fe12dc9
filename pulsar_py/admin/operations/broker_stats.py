"""REST resource of one broker's load and of all its topics, as load managers and consoles read it.

What belongs to Java's virtual machine is empty: there are no pools of memory, no JMX beans. Rates
are sums over the topics that are loaded here.

Source: BrokerStatsBase in Pulsar's broker; LocalBrokerData, SystemResourceUsage.
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Iterable
from http import HTTPStatus
from typing import Final

from msgspec import Struct

from pulsar_py.admin.http_messages import (
    HttpError,
    Request,
    Response,
    encoded_part,
    json_response,
)
from pulsar_py.admin.json_text import EncodedJson
from pulsar_py.admin.resources.brokers import VERSION
from pulsar_py.admin.resources.requests import namespace_of
from pulsar_py.admin.resources.topic_access import require_namespace
from pulsar_py.admin.resources.topic_stats_json import Json, topic_stats_json
from pulsar_py.admin.router import Route, get
from pulsar_py.common.loops.work import Turns
from pulsar_py.server.broker import BrokerService
from pulsar_py.server.security.actions import Action
from pulsar_py.server.topics.persistent import PersistentTopic
from pulsar_py.server.topics.stats import TopicStats
from pulsar_py.server.topics.topic import Topic

STATS: Final = "/admin/v2/broker-stats"
LOAD_MANAGER: Final = "org.apache.pulsar.broker.loadbalance.impl.ModularLoadManagerImpl"
"""What tools expect to be named; nothing here moves bundles by load."""

_MEBIBYTE: Final = 1024 * 1024
_POOLS: Final = ("default", "ml-cache")


_OLD_NAMES: Final = {
    "msgInCounter": "msgInCount",
    "bytesInCounter": "bytesInCount",
    "msgOutCounter": "msgOutCount",
    "bytesOutCounter": "bytesOutCount",
}
"""Names of statistics here, and in the answer for all topics."""


class _Totals(Struct):
    """Sums over the loaded topics."""

    topics: int = 0
    producers: int = 0
    consumers: int = 0
    message_in_rate: float = 0.0
    message_out_rate: float = 0.0
    bytes_in_rate: float = 0.0
    bytes_out_rate: float = 0.0


class BrokerStats:
    """Shows this broker's load."""

    def __init__(self, broker: BrokerService) -> None:
        self._broker = broker
        self._clock = broker.clock
        self._started_millis = self._clock.wall_time_millis()
        now = self._clock.monotonic_seconds()
        self._cpu = (0.0, now)  # seconds of the process, and when: at the last report
        self._cache = (0, 0, 0, now)  # hits, misses, evicted entries, at the last look at metrics

    def routes(self) -> Iterable[Route]:
        """The routes of this resource."""
        needed = Action.READ_BROKERS
        return (
            get(STATS + "/load-report", self.load_report, needed, answer="LoadReport"),
            get(STATS + "/metrics", self.metrics, needed, answer="list[MetricGroup]"),
            get(STATS + "/topics", self.topics, needed, answer="TopicsByNamespace"),
            get(STATS + "/mbeans", self.beans, needed, answer="list[MetricGroup]"),
            get(STATS + "/bookieops", self.bookie_operations, needed, answer="dict[str, Any]"),
            get(STATS + "/allocator-stats/{pool}", self.allocator, needed, answer="AllocatorStats"),
            get(
                STATS + "/broker-resource-availability/{tenant}/{namespace}",
                self.availability,
                needed,
                errors=(HTTPStatus.CONFLICT,),
                answer="dict[str, Any]",
            ),
        )

    async def load_report(self, request: Request) -> Response:  # noqa: ARG002
        """Return the broker's load: processor, memory, topics and their rates."""
        totals = await self._totals()
        addresses = self._broker.addresses.default
        bundles = [
            f"{namespace}/{bundle}" for namespace, bundle in self._broker.namespaces.owned_bundles()
        ]
        return json_response(
            {
                "webServiceUrl": addresses.http_url,
                "webServiceUrlTls": addresses.http_url_tls,
                "pulsarServiceUrl": addresses.broker_url,
                "pulsarServiceUrlTls": addresses.broker_url_tls,
                "persistentTopicsEnabled": True,
                "nonPersistentTopicsEnabled": True,
                **self._usage(totals),
                "msgThroughputIn": totals.bytes_in_rate,
                "msgThroughputOut": totals.bytes_out_rate,
                "msgRateIn": totals.message_in_rate,
                "msgRateOut": totals.message_out_rate,
                "lastUpdate": self._clock.wall_time_millis(),
                "startTimestamp": self._started_millis,
                "lastStats": {},
                "numTopics": totals.topics,
                "numBundles": len(bundles),
                "numConsumers": totals.consumers,
                "numProducers": totals.producers,
                "bundles": bundles,
                "lastBundleGains": [],
                "lastBundleLosses": [],
                "brokerVersionString": VERSION,
                "protocols": {},
                "advertisedListeners": {},
                "loadManagerClassName": LOAD_MANAGER,
            }
        )

    def _usage(self, totals: _Totals) -> Json:
        """The usage of processor (percent of a core), memory (MiB) and networks (KiB a second).

        The processor's is the mean since the last report. Nothing limits the networks: -1.
        """
        cpu, at = self._cpu
        self._cpu = now = time.process_time(), self._clock.monotonic_seconds()
        cores = os.cpu_count() or 1
        # The first report counts what the process did before this broker was made.
        percent = min(100 * (now[0] - cpu) / max(now[1] - at, 0.001), 100.0 * cores)
        largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / _MEBIBYTE
        return {
            "cpu": {"usage": percent, "limit": 100.0 * cores},
            "memory": {"usage": largest, "limit": total},
            "directMemory": {"usage": 0.0, "limit": 0.0},
            "bandwidthIn": {"usage": totals.bytes_in_rate / 1024, "limit": -1.0},
            "bandwidthOut": {"usage": totals.bytes_out_rate / 1024, "limit": -1.0},
        }

    async def _totals(self) -> _Totals:
        totals, turns = _Totals(), Turns()
        for topic in self._loaded():
            stats = await topic.stats_in_turns(turns)
            totals.topics += 1
            totals.producers += len(stats.producers)
            totals.consumers += topic.consumers_count
            totals.message_in_rate += stats.message_in_rate
            totals.message_out_rate += stats.message_out_rate
            totals.bytes_in_rate += stats.bytes_in_rate
            totals.bytes_out_rate += stats.bytes_out_rate
        return totals

    def _loaded(self) -> list[Topic]:
        return list(self._broker.topics.topics.values())

    async def metrics(self, request: Request) -> Response:  # noqa: ARG002
        """Return figures of the managed ledgers' cache, and of each namespace's topics."""
        spaces: dict[str, Json] = {}
        turns = Turns()
        for topic in self._loaded():
            stats = await topic.stats_in_turns(turns)
            sums = spaces.setdefault(str(topic.name.namespace_name), {})
            for name, value in _figures(topic, stats).items():
                sums[name] = sums.get(name, 0) + value
        answer: list[Json] = [{"metrics": self._cache_figures(), "dimensions": {}}]
        answer += [
            {"metrics": sums, "dimensions": {"namespace": name}} for name, sums in spaces.items()
        ]
        return json_response(answer)

    def _cache_figures(self) -> Json:
        """Rates are those since the last look; bytes a second by the mean size of what is cached.

        There are no pools, so nothing is allocated from one.
        """
        cache = self._broker.managed_ledgers.cache_manager
        entries = cache.entries_count
        mean_bytes = cache.used_bytes / entries if entries else 0.0
        hits, misses, evicted, at = self._cache
        now = self._clock.monotonic_seconds()
        self._cache = cache.hits_count, cache.misses_count, cache.evicted_entries_count, now
        seconds = max(now - at, 0.001)
        hits_rate = (cache.hits_count - hits) / seconds
        misses_rate = (cache.misses_count - misses) / seconds
        return {
            "brk_ml_count": sum(isinstance(each, PersistentTopic) for each in self._loaded()),
            "brk_ml_cache_used_size": cache.used_bytes,
            "brk_ml_cache_entries": entries,
            "brk_ml_cache_inserted_entries_total": entries + cache.evicted_entries_count,
            "brk_ml_cache_evicted_entries_total": cache.evicted_entries_count,
            "brk_ml_cache_evictions": cache.evicted_entries_count - evicted,
            "brk_ml_cache_hits_rate": hits_rate,
            "brk_ml_cache_hits_throughput": hits_rate * mean_bytes,
            "brk_ml_cache_misses_rate": misses_rate,
            "brk_ml_cache_misses_throughput": misses_rate * mean_bytes,
            **dict.fromkeys(_NO_POOLS, 0),
        }

    async def topics(self, request: Request) -> Response:  # noqa: ARG002
        """Return the statistics of all loaded topics by namespace, bundle and kind."""
        turns = Turns()
        found: dict[str, dict[str, dict[str, dict[str, EncodedJson]]]] = {}
        for topic in self._loaded():
            name = topic.name
            bundle = await self._broker.namespaces.bundle_of(name)
            stats = await topic_stats_json(
                await topic.stats_in_turns(turns),
                turns,
                is_persistent=name.is_persistent,
                owner_broker="",
            )
            stats["producerCount"] = len(topic.producers)
            for ours, theirs in _OLD_NAMES.items():
                stats[theirs] = stats[ours]
            if isinstance(topic, PersistentTopic):
                stats["pendingAddEntriesCount"] = topic.ledger.pending_appends_count
            kinds = found.setdefault(str(name.namespace_name), {}).setdefault(bundle, {})
            kinds.setdefault(name.domain, {})[str(name)] = await encoded_part(stats, turns)
        return json_response(found)

    async def beans(self, request: Request) -> Response:  # noqa: ARG002
        """Return no beans: they are of Java's management."""
        return json_response([])

    async def bookie_operations(self, request: Request) -> Response:  # noqa: ARG002
        """Return no pending operations: those of BookKeeper's Java client are meant."""
        return json_response({})

    async def allocator(self, request: Request) -> Response:
        """Return the pools of memory, of which there are none."""
        pool = request.path["pool"]
        if pool not in _POOLS:
            raise HttpError(HTTPStatus.NOT_ACCEPTABLE, f"Invalid allocator name : {pool:.200}")
        return json_response(
            {
                "numDirectArenas": 0,
                "numHeapArenas": 0,
                "numThreadLocalCaches": 0,
                "normalCacheSize": 0,
                "smallCacheSize": 0,
                "directArenas": [],
                "heapArenas": [],
            }
        )

    async def availability(self, request: Request) -> Response:
        """Refuse as Apache Pulsar's load manager does.

        Raises:
            HttpError: 409 always, 404 for an unknown namespace.
        """
        await require_namespace(self._broker, namespace_of(request))
        raise HttpError(HTTPStatus.CONFLICT, f"{LOAD_MANAGER} does not support this operation")


_NO_POOLS: Final = tuple(
    f"brk_ml_cache_pool_{name}"
    for name in (
        "active_allocations",
        "active_allocations_huge",
        "active_allocations_normal",
        "active_allocations_small",
        "allocated",
        "used",
    )
)


def _figures(topic: Topic, stats: TopicStats) -> Json:
    """What a topic adds to its namespace's figures."""
    return {
        "brk_no_of_subscriptions": len(topic.subscriptions),
        "brk_no_of_producers": len(stats.producers),
        "brk_no_of_consumers": topic.consumers_count,
        "brk_in_rate": stats.message_in_rate,
        "brk_out_rate": stats.message_out_rate,
        "brk_in_tp_rate": stats.bytes_in_rate,
        "brk_out_tp_rate": stats.bytes_out_rate,
        "brk_storage_size": stats.storage_bytes,
        "brk_msg_backlog": sum(each.backlog_entries for each in stats.subscriptions.values()),
    }
