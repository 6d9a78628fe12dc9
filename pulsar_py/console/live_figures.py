"""Resource of the broker's rates and totals, measured while a page asks for them.

    GET /admin/console/live      samples of the last minutes, and the busiest topics
    GET /admin/console/storage   what the disk has, and which namespaces and topics have most of it

A sample is taken when one is asked for and the last is old enough, at most once a second and so
seldom that measuring takes a tenth of the time at the most: ten thousand topics are counted in
turns. All who look share the samples, `MAX_SAMPLES` of which are kept. Rates are those between two
samples, not the means over a minute that statistics have.

Only topics that are loaded are counted, as in all statistics.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Iterable, Mapping
from heapq import nlargest
from typing import Any, Final

from msgspec import Struct, to_builtins
from msgspec.structs import asdict

from pulsar_py.admin.http_messages import Request, Response, json_response
from pulsar_py.admin.router import Route, get
from pulsar_py.common.loops.work import Turns
from pulsar_py.console.answers import LiveAnswer, StorageAnswer
from pulsar_py.console.callers import BASE
from pulsar_py.console.parameters import Amount
from pulsar_py.server.broker import BrokerService
from pulsar_py.server.security.actions import Action

__all__ = ["LiveFigures", "Sample", "TopicCounts", "busiest", "sample_between"]

MAX_SAMPLES: Final = 300
BUSIEST: Final = 10
LARGEST: Final = 50
STALE_SECONDS: Final = 30.0
"""After a pause as long as this the next sample has no rates: they would be means over it."""

_SINCE: Final = Amount("since", default=0)
_LEAST_SECONDS: Final = 1.0
_SHARE_OF_TIME: Final = 10
_UNITS_A_TOPIC: Final = 100


class TopicCounts(Struct, frozen=True):
    """The counters of one topic."""

    messages_in: int
    bytes_in: int
    messages_out: int
    bytes_out: int
    backlog: int
    storage_bytes: int


class Sample(Struct, frozen=True, kw_only=True, rename="camel"):
    """The broker at one moment. Rates are per second since the sample before."""

    millis: int
    message_in_rate: float = 0.0
    bytes_in_rate: float = 0.0
    message_out_rate: float = 0.0
    bytes_out_rate: float = 0.0
    topics: int = 0
    subscriptions: int = 0
    producers: int = 0
    consumers: int = 0
    connections: int = 0
    backlog: int = 0
    storage_bytes: int = 0


Counts = Mapping[str, TopicCounts]


def growth(before: Counts, after: Counts) -> dict[str, tuple[int, int, int, int]]:
    """The growth of each topic's four counters; those of a reloaded topic begin at 0."""
    none = TopicCounts(0, 0, 0, 0, 0, 0)
    found: dict[str, tuple[int, int, int, int]] = {}
    for name, now in after.items():
        then = before.get(name, now)
        if now.messages_in < then.messages_in or now.messages_out < then.messages_out:
            then = none
        grown = (
            now.messages_in - then.messages_in,
            max(now.bytes_in - then.bytes_in, 0),
            now.messages_out - then.messages_out,
            max(now.bytes_out - then.bytes_out, 0),
        )
        if any(grown):
            found[name] = grown
    return found


def sample_between(before: Counts, after: Counts, seconds: float, totals: Sample) -> Sample:
    """`totals` with the rates between two counts."""
    sums = [sum(column) for column in zip(*growth(before, after).values(), strict=True)]
    if not sums or seconds <= 0:
        return totals
    rates = [total / seconds for total in sums]
    fields = {**asdict(totals)}
    fields |= dict(
        zip(
            ("message_in_rate", "bytes_in_rate", "message_out_rate", "bytes_out_rate"),
            rates,
            strict=True,
        )
    )
    return Sample(**fields)


def busiest(before: Counts, after: Counts, seconds: float) -> list[dict[str, Any]]:  # Any: JSON
    """The topics through which most messages went between two counts."""
    if seconds <= 0:
        return []
    top = nlargest(
        BUSIEST, growth(before, after).items(), key=lambda each: (each[1][0] + each[1][2], each[0])
    )
    return [
        {
            "topic": name,
            "messageInRate": grown[0] / seconds,
            "bytesInRate": grown[1] / seconds,
            "messageOutRate": grown[2] / seconds,
            "bytesOutRate": grown[3] / seconds,
            "backlog": after[name].backlog,
        }
        for name, grown in top
    ]


class LiveFigures:
    """Measures one broker while somebody looks; its console owns it."""

    def __init__(self, broker: BrokerService) -> None:
        self._broker = broker
        self._samples: deque[Sample] = deque(maxlen=MAX_SAMPLES)
        self._counts: Counts = {}  # of the last sample
        self._sampled_at: float | None = None  # None before the first
        self._due_at = 0.0  # no sample is taken before
        self._busiest: list[dict[str, Any]] = []
        self._measuring = asyncio.Lock()

    def routes(self) -> Iterable[Route]:
        """The routes of this resource."""
        return (
            get(BASE + "/live", self.live, Action.READ_BROKERS, _SINCE, answer=LiveAnswer),
            get(BASE + "/storage", self.storage, Action.READ_BROKERS, answer=StorageAnswer),
        )

    async def live(self, request: Request) -> Response:
        """Return the samples after `since` (milliseconds), and the busiest topics."""
        await self._measure()
        since = _SINCE.required(request)
        return json_response(
            {
                "samples": [to_builtins(each) for each in self._samples if each.millis > since],
                "busiest": self._busiest,
            }
        )

    async def storage(self, request: Request) -> Response:  # noqa: ARG002
        """Return figures of the store, and the sizes of the largest namespaces and topics."""
        await self._measure()
        sizes: Counter[str] = Counter()
        by_namespace: Counter[str] = Counter()
        turns = Turns()
        for name, counts in self._counts.items():
            await turns.take()
            if counts.storage_bytes:
                sizes[name] = counts.storage_bytes
                by_namespace[name.partition("://")[2].rpartition("/")[0]] += counts.storage_bytes
        return json_response(
            {
                "store": dict(self._broker.ledger_store.figures()),
                "totalBytes": sum(sizes.values()),
                "namespaces": _largest(by_namespace),
                "topics": _largest(sizes),
            }
        )

    async def _measure(self) -> None:
        """Take a sample, unless the last one is young enough."""
        async with self._measuring:
            clock = self._broker.clock
            began = clock.monotonic_seconds()
            if self._sampled_at is not None and began < self._due_at:
                return
            counts, totals = await self._count()
            now = clock.monotonic_seconds()
            last = self._sampled_at
            if last is not None and began - last < STALE_SECONDS:
                self._samples.append(sample_between(self._counts, counts, began - last, totals))
                self._busiest = busiest(self._counts, counts, began - last)
            else:
                self._samples.append(totals)
                self._busiest = []
            self._counts, self._sampled_at = counts, began
            self._due_at = began + max(_LEAST_SECONDS, _SHARE_OF_TIME * (now - began))

    async def _count(self) -> tuple[dict[str, TopicCounts], Sample]:
        broker, turns = self._broker, Turns()
        counts: dict[str, TopicCounts] = {}
        sums: Counter[str] = Counter()
        for topic in list(broker.topics.topics.values()):
            await turns.take(_UNITS_A_TOPIC)
            stats = await topic.stats_in_turns(turns)
            backlog = sum(each.backlog_entries for each in stats.subscriptions.values())
            counts[str(topic.name)] = TopicCounts(
                stats.messages_in_count,
                stats.bytes_in_count,
                stats.messages_out_count,
                stats.bytes_out_count,
                backlog,
                stats.storage_bytes,
            )
            sums["subscriptions"] += len(stats.subscriptions)
            sums["producers"] += len(stats.producers)
            sums["consumers"] += sum(len(each.consumers) for each in stats.subscriptions.values())
            sums["backlog"] += backlog
            sums["storage_bytes"] += stats.storage_bytes
        return counts, Sample(
            millis=broker.clock.wall_time_millis(),
            topics=len(counts),
            connections=broker.connections.count,
            **sums,
        )


def _largest(sizes: Mapping[str, int]) -> list[dict[str, Any]]:  # Any: JSON
    top = nlargest(LARGEST, sizes.items(), key=lambda each: (each[1], each[0]))
    return [{"name": name, "bytes": size} for name, size in top]
