"""`BundleHandOver`: gives all bundles of a broker that leaves to others, a few at a time (edge).

A topic is out from the moment it is closed here until the next broker has opened it; both are
processor time for the most part. So bundles go one after the other, those with few topics together,
and the next ones are closed when the topics of those before are open elsewhere: while the clients
of one bundle are served there already, those of the next ones still are here. A broker that says
nothing about its topics, as Apache Pulsar's, is not waited for, and none for long.

This broker chooses who gets each bundle, as a leader does, and has that broker take it before the
clients are told, with its address. Where others can't be told, because this broker has no rights
there for instance, bundles are only given up, and clients look them up.

Source: NamespaceService.unloadNamespaceBundle, PulsarService.closeAsync in Pulsar, which closes
bundles in any order and tells nobody where they go.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Final, Protocol

from msgspec import Struct, field

from pulsar_py.common.errors import MetadataError, ServiceError
from pulsar_py.common.loops.clock import Clock
from pulsar_py.common.loops.concurrently import each_result
from pulsar_py.common.names import NamespaceName
from pulsar_py.server.load.broker_report import BrokerReport

logger = logging.getLogger(__name__)

TOPICS_AT_ONCE: Final = 32
"""Loaded topics of bundles that go together; a bundle with more goes alone."""
BUNDLES_AT_ONCE: Final = 8
"""Bundles that go together at most."""
OPENED_SHARE: Final = 0.9
"""Of the topics that went to a broker: with so many open the next bundle goes."""
OPENING_SECONDS: Final = 0.5
"""For which a broker is waited for at most, to open topics, and as long again for each 16."""
LOOK_SECONDS: Final = 0.03
"""Between two looks at that."""
MAX_REFUSALS: Final = 3
"""Bundles in a row that could not be transferred before no more are tried."""

Bundle = tuple[NamespaceName, str]


class Destinations(Protocol):
    """The part of the `ClusterMembership` that chooses."""

    async def candidate(self, bundle: str) -> BrokerReport | None:
        """Who shall take `tenant/namespace/range`, one that can be reached; None: nobody."""


class BundleHandOver:
    """The hand-over of one broker, which has left its cluster's list of brokers by then."""

    def __init__(
        self,
        destinations: Destinations,
        *,
        transfer: Callable[[NamespaceName, str, BrokerReport], Awaitable[bool]],
        unload: Callable[[NamespaceName, str], Awaitable[None]],
        loaded_count: Callable[[BrokerReport], Awaitable[int | None]],
        clock: Clock,
    ) -> None:
        """`transfer` moves a bundle and returns whether the other broker took it.

        `unload` gives it up. `loaded_count` asks a broker how many topics it has loaded; None if it
        does not say.
        """
        self._destinations = destinations
        self._transfer = transfer
        self._unload = unload
        self._loaded_count = loaded_count
        self._clock = clock
        self._refusals_count = 0  # in a row

    async def run(self, topics_counts: Mapping[Bundle, int]) -> None:
        """Give bundles up, each with its number of loaded topics; errors are logged."""
        groups = groups_of(topics_counts)
        for group in groups:
            arrivals = _Arrivals()
            for bundle in group:
                await self._choose(bundle, topics_counts[bundle], arrivals)
            await each_result(partial(self._hand_over, arrivals=arrivals), group)
            if group is not groups[-1]:
                await self._until_open(arrivals)

    async def _choose(self, bundle: Bundle, topics_count: int, arrivals: _Arrivals) -> None:
        destination = await self._destination(f"{bundle[0]}/{bundle[1]}")
        if destination is None:
            return
        arrivals.destinations[bundle] = destination
        if not topics_count:
            return
        sent = arrivals.sent.get(destination.broker_id)
        if sent is None:
            loaded_count = await self._loaded_count(destination)
            if loaded_count is None:
                return
            sent = arrivals.sent[destination.broker_id] = _Sent(destination, loaded_count)
        sent.topics_count += topics_count

    async def _until_open(self, arrivals: _Arrivals) -> None:
        """Return when the brokers have opened nearly all topics that they got, or not in time."""
        for sent in arrivals.sent.values():
            wanted = sent.loaded_count + OPENED_SHARE * sent.topics_count
            seconds = OPENING_SECONDS * (1 + sent.topics_count // 16)
            deadline = self._clock.monotonic_seconds() + seconds
            while self._clock.monotonic_seconds() < deadline:
                count = await self._loaded_count(sent.destination)
                if count is None or count >= wanted:
                    break
                await self._clock.sleep(LOOK_SECONDS)

    async def _hand_over(self, bundle: Bundle, arrivals: _Arrivals) -> None:
        namespace, bundle_range = bundle
        try:
            destination = arrivals.destinations.get(bundle)
            if destination is None:
                await self._unload(namespace, bundle_range)
            elif await self._transfer(namespace, bundle_range, destination):
                self._refusals_count = 0
            else:
                self._refusals_count += 1
        except (MetadataError, ServiceError) as error:  # topics are closed; it is tried again
            extra = {"namespace": str(namespace), "bundle": bundle_range, "error": str(error)}
            logger.warning("bundle not released", extra=extra)

    async def _destination(self, name: str) -> BrokerReport | None:
        if self._refusals_count >= MAX_REFUSALS:
            return None
        try:
            return await self._destinations.candidate(name)
        except MetadataError as error:
            logger.info("no broker chosen", extra={"bundle": name, "error": str(error)})
            return None


class _Sent(Struct):
    """What goes to one broker together."""

    destination: BrokerReport
    loaded_count: int
    """Topics that it had loaded before."""
    topics_count: int = 0


class _Arrivals(Struct):
    """Where the bundles of one group go."""

    destinations: dict[Bundle, BrokerReport] = field(default_factory=dict)
    sent: dict[str, _Sent] = field(default_factory=dict)
    """By the id of the broker; of those that say how many topics they have."""


def groups_of(topics_counts: Mapping[Bundle, int]) -> list[list[Bundle]]:
    """The bundles that go together, in the order in which they go: the fewest topics first."""
    groups: list[list[Bundle]] = []
    topics_count = 0
    for bundle, count in sorted(topics_counts.items(), key=lambda item: item[1]):
        topics_count += count
        if not groups or topics_count > TOPICS_AT_ONCE or len(groups[-1]) >= BUNDLES_AT_ONCE:
            groups.append([])
            topics_count = count
        groups[-1].append(bundle)
    return groups
