"""`BundleMoves`: bundles of a cluster move to a certain broker, and are split (edge).

What another broker owns is asked of it by REST, as Apache Pulsar's brokers do it; what this broker
owns is done here. A bundle that moves is unloaded; then the destination takes it, because an
authoritative lookup asks it to; only then are this broker's clients told, with the destination's
address. If the destination does not take it, they are told without one, and look it up.

Source: ModularLoadManagerImpl, NamespacesBase.internalUnloadNamespaceBundleAsync,
NamespaceService.splitAndOwnBundle in Pulsar's broker.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urlencode

from pulsar_py.common.errors import BundleSplitError, PulsarError
from pulsar_py.common.loops.clock import Clock
from pulsar_py.common.loops.work import NAMES_A_TURN, in_turns
from pulsar_py.common.names import NamespaceName, TopicName
from pulsar_py.server.connection.connections import Connections
from pulsar_py.server.load.broker_report import BrokerReport
from pulsar_py.server.load.other_brokers import OtherBrokers
from pulsar_py.server.namespaces.bundles import MAX_BUNDLES, in_bundle, topic_hash
from pulsar_py.server.namespaces.ownership_log import HANDED_OVER
from pulsar_py.server.namespaces.service import NamespaceService
from pulsar_py.server.namespaces.splitting import SplitInput, split_places
from pulsar_py.server.topics.registry import TopicListMode, TopicRegistry

if TYPE_CHECKING:
    from pulsar_py.server.load.cluster_membership import ClusterMembership


logger = logging.getLogger(__name__)

TRANSFER: Final = "transferTo"
"""Parameter of an unload: the id of the broker that the clients are sent to. Apache Pulsar's
brokers do not know it, and unload as always."""

TAKE_SECONDS: Final = 5.0
"""For which a broker is asked to take a bundle, while its clients wait."""
COUNT_SECONDS: Final = 2.0
"""For which it is asked how many topics it has loaded."""

Content = dict[str, list[tuple[int, float]]]
"""Hash and throughput of each topic, sorted by hash, for each bundle."""


class BundleMoves:
    """Moves and splits for one broker; implements `balancer.Actions`."""

    def __init__(
        self,
        *,
        namespaces: NamespaceService,
        topics: TopicRegistry,
        connections: Connections,
        membership: ClusterMembership | None,
        others: OtherBrokers,
        split_algorithm: Callable[[], str],
    ) -> None:
        """`split_algorithm` is the default; without `membership` there are no other brokers."""
        self._namespaces = namespaces
        self._topics = topics
        self._connections = connections
        self._membership = membership
        self._others = others
        self._split_algorithm = split_algorithm
        self.redirected_count = 0
        """Producers and consumers that were sent to the next broker by its address."""

    def _is_own(self, owner: BrokerReport) -> bool:
        return self._membership is not None and owner.broker_id == self._membership.own.broker_id

    # --- moving --------------------------------------------------------------------------------

    async def move(self, bundle: str, owner: BrokerReport, destination: BrokerReport) -> None:
        """Have the owner of `tenant/namespace/range` hand it over to another broker.

        Raises:
            PulsarError: It could not be done, or not be told.
        """
        namespace, _, bundle_range = bundle.rpartition("/")
        if self._is_own(owner):
            await self.transfer(NamespaceName.parse(namespace), bundle_range, destination)
            return
        query = urlencode({TRANSFER: destination.broker_id})
        path = f"/admin/v2/namespaces/{namespace}/{bundle_range}/unload?{query}"
        await self._others.call(owner, "PUT", path)

    async def transfer(
        self,
        namespace: NamespaceName,
        bundle: str,
        destination: BrokerReport,
        *,
        reason: str | None = None,
    ) -> bool:
        """Unload a bundle of this broker, have another one take it, and send its clients there.

        Returns False if there are clients and that broker was not seen to take it: they look it up.
        `reason` is noted; None: that it moved there.

        Raises:
            SessionInDoubtError: The unload was not begun.
            MetadataError: The topics are closed; the ownership record will be deleted later.
        """
        concerns = in_bundle(bundle)
        name = next(
            (
                topic.name
                for topic in self._topics.topics.values()
                if topic.name.namespace_name == namespace and concerns(topic.name)
            ),
            None,
        )

        def is_of_bundle(each: TopicName) -> bool:
            return each.namespace_name == namespace and concerns(each)

        with self._connections.held_closes.holding(is_of_bundle) as hold:
            await self._namespaces.unload_bundle(
                namespace, bundle, reason or f"moved to {destination.broker_id}"
            )
            if name is None:
                return True  # nobody is connected; whoever looks a topic up is sent by the leader
            is_taken = await self._is_taken(name, destination)
            if is_taken and not destination.advertised_listeners:
                self.redirected_count += hold.end(
                    destination.pulsar_url, destination.pulsar_url_tls
                )
            return is_taken

    async def _is_taken(self, name: TopicName, destination: BrokerReport) -> bool:
        """Have another broker take a topic's bundle; whether it certainly has it now."""
        topic = f"{name.domain}/{name.namespace_name}/{quote(name.local_name, safe='')}"
        path = f"/lookup/v2/topic/{topic}?authoritative=true"
        try:
            async with asyncio.timeout(TAKE_SECONDS):
                answer = (await self._others.call(destination, "GET", path)).json()
        except (PulsarError, TimeoutError) as error:
            extra = {
                "topic": str(name),
                "broker_id": destination.broker_id,
                "error": str(error) or f"no answer within {TAKE_SECONDS:g} s",
            }
            logger.info("bundle not taken yet", extra=extra)
            return False
        found = answer if isinstance(answer, dict) else {}
        return (found.get("brokerUrl"), found.get("brokerUrlTls")) == (
            destination.pulsar_url,
            destination.pulsar_url_tls,
        )

    async def hand_over(self, clock: Clock) -> None:
        """Give all bundles of this broker to others, while lookups go on; errors are logged."""
        assert self._membership is not None, "nobody else is there"
        counts = dict.fromkeys(self._namespaces.owned_bundles(), 0)
        async for topics in in_turns(list(self._topics.topics.values()), NAMES_A_TURN):
            for topic in topics:
                name = topic.name
                key = name.namespace_name, await self._namespaces.bundle_of(name)
                if key in counts:
                    counts[key] += 1
        from pulsar_py.server.load.bundle_hand_over import (  # noqa: PLC0415 - of a cluster
            BundleHandOver,
        )

        await BundleHandOver(
            self._membership,
            transfer=partial(self.transfer, reason=HANDED_OVER),
            unload=partial(self._namespaces.unload_bundle, reason=HANDED_OVER),
            loaded_count=self._loaded_count,
            clock=clock,
        ).run(counts)

    async def _loaded_count(self, broker: BrokerReport) -> int | None:
        """How many topics another broker has loaded; None if it does not say, or not soon."""
        try:
            async with asyncio.timeout(COUNT_SECONDS):
                found = (await self._others.call(broker, "GET", "/admin/v2/brokers/load")).json()
        except (PulsarError, TimeoutError):
            return None
        count = found.get("loadedTopics") if isinstance(found, dict) else None
        return count if isinstance(count, int) else None

    # --- splitting -----------------------------------------------------------------------------

    async def split(self, bundle: str, owner: BrokerReport, *, unloads_parts: bool) -> None:
        """Have the owner of `tenant/namespace/range` split it.

        Raises:
            PulsarError: It could not be done, or not be told.
        """
        namespace, _, bundle_range = bundle.rpartition("/")
        if self._is_own(owner):
            name = NamespaceName.parse(namespace)
            await self.split_here(name, bundle_range, unloads_parts=unloads_parts)
            return
        flag = "true" if unloads_parts else "false"
        path = f"/admin/v2/namespaces/{namespace}/{bundle_range}/split?unload={flag}"
        await self._others.call(owner, "PUT", path)

    async def split_here(
        self,
        namespace: NamespaceName,
        bundle: str,
        *,
        unloads_parts: bool,
        algorithm: str = "",
        positions: Sequence[int] = (),
    ) -> None:
        """Split a bundle of this broker; `positions` are for the algorithm that takes them.

        Raises:
            BundleSplitError: There is no place to cut it, or the namespace would have too many.
            ServiceNotReadyError: This broker does not own it, or its bundles have changed.
            MetadataError: It can't be stored now.
        """
        lower, upper = (int(text, 16) for text in bundle.split("_"))
        places = split_places(
            algorithm or self._split_algorithm(),
            SplitInput(
                lower=lower,
                upper=upper,
                topics=(await self.content_of(namespace)).get(bundle, []),
                positions=positions,
            ),
        )
        if not places:
            raise BundleSplitError(
                f"there is no place to split {namespace}/{bundle} by this algorithm: nothing was "
                "changed"
            )
        known = await self._namespaces.bundles_of(namespace)
        if len(known.boundaries) - 1 + len(places) > MAX_BUNDLES:
            raise BundleSplitError(f"{namespace} would have more than {MAX_BUNDLES} bundles")
        parts = await self._namespaces.split_bundle(namespace, bundle, places)
        if unloads_parts:
            for part in parts:
                await self._namespaces.unload_bundle(namespace, part)

    async def content_of(self, namespace: NamespaceName) -> Content:
        """What is in the bundles; throughput is known of the topics that are loaded here."""
        bundles = await self._namespaces.bundles_of(namespace)
        found: Content = {}
        names = await self._topics.list_topics(namespace, TopicListMode.ALL)
        async for some in in_turns(names, size=500):
            for name in some:
                topic = self._topics.loaded(TopicName.parse(name))
                stats = None if topic is None else topic.stats()
                flow = 0.0 if stats is None else stats.bytes_in_rate + stats.bytes_out_rate
                found.setdefault(bundles.bundle_of(name), []).append((topic_hash(name), flow))
        return {bundle: sorted(topics) for bundle, topics in found.items()}
