"""`BundleHandOver`: gives all bundles of a broker that leaves to others, a few at a time (edge).

A topic is out from the moment it is closed here until the next broker has opened it; both are
processor time for the most part. So bundles go one after the other, those with few topics together:
while the clients of one are served elsewhere already, those of the next ones still are here.

This broker chooses who gets each bundle, as a leader does, and has that broker take it before the
clients are told, with its address. Where others can't be told, because this broker has no rights
there for instance, bundles are only given up, and clients look them up.

Source: NamespaceService.unloadNamespaceBundle, PulsarService.closeAsync in Pulsar, which closes
bundles in any order and tells nobody where they go.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, Protocol

from pulsar_py.common.errors import MetadataError, ServiceError
from pulsar_py.common.loops.concurrently import each_result
from pulsar_py.common.names import NamespaceName
from pulsar_py.server.load.broker_report import BrokerReport

logger = logging.getLogger(__name__)

TOPICS_AT_ONCE: Final = 32
"""Loaded topics of bundles that go together; a bundle with more goes alone."""
BUNDLES_AT_ONCE: Final = 8
"""Bundles that go together at most."""
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
    ) -> None:
        """`transfer` moves a bundle and returns whether the other broker took it.

        `unload` gives it up.
        """
        self._destinations = destinations
        self._transfer = transfer
        self._unload = unload
        self._refusals_count = 0  # in a row

    async def run(self, topics_counts: Mapping[Bundle, int]) -> None:
        """Give bundles up, each with its number of loaded topics; errors are logged."""
        for group in groups_of(topics_counts):
            await each_result(self._hand_over, group)

    async def _hand_over(self, bundle: Bundle) -> None:
        namespace, bundle_range = bundle
        try:
            destination = await self._destination(f"{namespace}/{bundle_range}")
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
