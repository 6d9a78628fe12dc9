"""`PartitionedTopics`: creates, counts, grows, deletes and lists partitioned topics (edge).

A partitioned topic is a number in metadata, which `Partitions` stores; its partitions are topics
like others, loaded and deleted by the registry. This class keeps both consistent. Clients know a
partition by the number alone, so where a topic grows, new partitions and their subscriptions are
stored before the number is, and the number is deleted last. Brokers know it by the number, too:
those partitions that others serve get their subscriptions after it. An operation that failed
half-way is completed by calling it again.

Invariant: when growing has ended, each partition has the subscriptions that any of the partitions
that there were before had while it grew.

Source: PersistentTopicsBase (createSubscriptions comes before updatePartitionedTopic),
fetchPartitionedTopicMetadataCheckAllowAutoCreationAsync of BrokerService in Pulsar's broker.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol
from weakref import WeakValueDictionary

from pulsar_py.common.errors import NotAllowedError, TopicExistsError, TopicNotFoundError
from pulsar_py.common.failures import OnFailureAwait
from pulsar_py.common.loops.concurrently import each_result
from pulsar_py.common.names import NamespaceName, TopicName
from pulsar_py.metadata.documents import NamespacePolicies
from pulsar_py.metadata.resources import Resources
from pulsar_py.server.policies.auto_creation import NameFacts, answer_partitions
from pulsar_py.server.policies.effective_settings import effective_auto_creation
from pulsar_py.server.topics.partitions import TOPICS_AT_ONCE, Partitions
from pulsar_py.server.topics.registry_settings import RegistrySettings

if TYPE_CHECKING:
    from pulsar_py.server.topics.topic import Topic


MAX_COPIES: Final = 10
"""How often subscriptions are looked for again that came while others were copied."""


class SingleTopics(Protocol):
    """The part of the `TopicRegistry` that `PartitionedTopics` uses."""

    settings: RegistrySettings

    def loaded(self, name: TopicName) -> Topic | None:
        """The topic if it is in memory and serving."""

    async def get_or_load(self, name: TopicName, *, create_if_missing: bool) -> Topic:
        """The topic, loaded or created."""

    async def exists(self, name: TopicName) -> bool:
        """Whether the topic is stored or loaded."""

    async def delete(self, name: TopicName, *, force: bool = False) -> None:
        """Delete one topic."""

    async def forget(self, name: TopicName) -> None:
        """Remove the policies and schemas of a whole topic, partitions included."""

    async def facts(self, name: TopicName) -> NameFacts:
        """The facts about a name."""

    async def check_topics_limit(
        self, namespace: NamespaceName, policies: NamespacePolicies | None, added_count: int
    ) -> None:
        """Raise if the namespace may not have that many more topics."""


class OtherOwners(Protocol):
    """The part of `Elsewhere` that `PartitionedTopics` uses."""

    async def is_here(self, name: TopicName) -> bool:
        """Whether this broker serves a partition, or takes it now that nobody does."""

    async def create_subscription(self, name: TopicName, subscription: str) -> bool:
        """Have another owner create a subscription at the earliest message; False without one."""


class PartitionedTopics:
    """The partitioned topics of a broker; owned by its `TopicRegistry`."""

    def __init__(
        self,
        topics: SingleTopics,
        partitions: Partitions,
        resources: Resources,
        ensure_owned: Callable[[TopicName], Awaitable[None]],
    ) -> None:
        """`ensure_owned` makes this broker the owner of a partition that has none."""
        self._topics = topics
        self._partitions = partitions
        self._resources = resources
        self._ensure_owned = ensure_owned
        self.others: OtherOwners | None = None
        """Set where there are other brokers."""
        # Held while a topic is created, grows or is deleted, by name.
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def _lock(self, name: TopicName) -> asyncio.Lock:
        lock = self._locks.get(str(name))
        if lock is None:
            lock = self._locks[str(name)] = asyncio.Lock()
        return lock

    async def count(self, name: TopicName) -> int:
        """Number of partitions, 0 when the topic is not partitioned or does not exist."""
        return await self._partitions.count(name)

    async def count_or_create(self, name: TopicName, *, auto_create: bool) -> int:
        """The number of partitions for PARTITIONED_METADATA; creates the topic if that is allowed.

        Raises:
            TopicNotFoundError: The namespace is missing, or the topic is and may not be created.
            NotAllowedError: The policy asks for more partitions than a topic may have.
        """
        namespace = await self._resources.namespaces.get(name.namespace_name)
        if namespace is None or namespace.is_deleted:
            raise TopicNotFoundError("Namespace not found")
        policy = effective_auto_creation(self._topics.settings.auto_creation, namespace)
        answer = answer_partitions(await self._topics.facts(name), policy, auto_create=auto_create)
        if not answer.creates:
            return answer.partitions_count
        self._check_limit(name, answer.partitions_count)
        await self._topics.check_topics_limit(
            name.namespace_name, namespace, answer.partitions_count
        )
        try:
            await self._partitions.put_count(name, answer.partitions_count)
        except TopicExistsError:
            return await self._partitions.count(name)  # another request was faster
        return answer.partitions_count

    async def create(
        self,
        name: TopicName,
        partitions_count: int,
        *,
        properties: Mapping[str, str] | None = None,
        is_local_only: bool = False,
    ) -> None:
        """Create metadata and partitions. `is_local_only` matters to replicated namespaces only.

        Raises:
            TopicExistsError: There is a topic of that name, partitioned or not.
            NotAllowedError: There are too many partitions, or none, or the name is a partition's.
            TopicNotFoundError: There is no such namespace.
        """
        del is_local_only
        if name.is_partition or partitions_count <= 0:
            raise NotAllowedError(
                f"{name} can't have {partitions_count} partitions: expected at least 1, and a name "
                "that is not a partition's"
            )
        self._check_limit(name, partitions_count)
        namespace = await self._resources.namespaces.get(name.namespace_name)
        if namespace is None or namespace.is_deleted:
            raise TopicNotFoundError("Namespace not found")
        if await self._topics.exists(name):
            raise TopicExistsError(f"{name} exists and is not partitioned")
        await self._topics.check_topics_limit(name.namespace_name, namespace, partitions_count)
        async with self._lock(name):
            await self._partitions.put_count(name, partitions_count, properties)
            if name.is_persistent:
                await self._partitions.create_stored(map(name.partition, range(partitions_count)))

    def _check_limit(self, name: TopicName, partitions_count: int) -> None:
        limit = self._topics.settings.max_partitions
        if partitions_count > limit:
            raise NotAllowedError(
                f"{name} can't have {partitions_count} partitions: at most {limit} are allowed"
            )

    async def grow(self, name: TopicName, partitions_count: int) -> None:
        """Add partitions; on the new ones existing subscriptions are created at Earliest.

        With the number that there is, or after a call that failed, whatever is missing is made:
        partitions, and subscriptions that not all partitions have.

        Raises:
            TopicNotFoundError: The topic is not partitioned.
            NotAllowedError: There are more already, or a topic may not have so many.
            OtherBrokerError: Another broker serves a partition, and created no subscription there.
            ServiceNotReadyError: No broker serves a partition that lacks a subscription.
        """
        self._check_limit(name, partitions_count)
        async with self._lock(name):
            current = await self._partitions.count_to_grow(name, partitions_count)
            before = [name.partition(index) for index in range(current)]
            after = [name.partition(index) for index in range(partitions_count)]
            if await self._partitions.is_being_deleted(name):  # a deletion that was cut short ends
                await self._partitions.set_being_deleted(name, is_deleted=False)
            if name.is_persistent:
                await self._partitions.create_stored(after)
                here = [each for each in after[current:] if await self._is_here(each)]
                await self._copy_subscriptions(before, [*before, *here])
            if partitions_count > current:
                await self._partitions.grow(name, partitions_count)
                if name.is_persistent:  # who subscribed meanwhile knows the old number only
                    await self._copy_subscriptions(before, after)

    async def create_missed(self, name: TopicName) -> None:
        """Make what is missing of a partitioned topic, as growing to its own number does.

        Raises:
            TopicNotFoundError: The topic is not partitioned.
        """
        await self.grow(name, await self._partitions.count(name))

    async def _is_here(self, name: TopicName) -> bool:
        return self.others is None or await self.others.is_here(name)

    async def _copy_subscriptions(
        self, before: Sequence[TopicName], after: Sequence[TopicName]
    ) -> None:
        """Give all of `after` what any of `before` has; again, for what came meanwhile."""
        for _ in range(MAX_COPIES):
            stored = await each_result(self._stored_subscriptions, after, at_once=TOPICS_AT_ONCE)
            wanted = frozenset[str]().union(*stored[: len(before)])
            lacking = [
                (name, wanted - has)
                for name, has in zip(after, stored, strict=True)
                if not wanted <= has
            ]
            if not lacking:
                return
            await each_result(
                lambda each: self._create_subscriptions(*each), lacking, at_once=TOPICS_AT_ONCE
            )

    async def _stored_subscriptions(self, name: TopicName) -> frozenset[str]:
        prefix = self._topics.settings.topic.replicator_prefix
        return frozenset(await self._partitions.stored_subscriptions(name, prefix))

    async def _create_subscriptions(self, name: TopicName, subscriptions: frozenset[str]) -> None:
        for subscription in sorted(subscriptions):
            if self.others is not None and await self.others.create_subscription(
                name, subscription
            ):
                continue
            await self._ensure_owned(name)
            topic = await self._topics.get_or_load(name, create_if_missing=True)
            await topic.create_subscription(subscription, starts_at_earliest=True)

    async def delete(self, name: TopicName, *, force: bool = False) -> None:
        """Delete all partitions, then the metadata.

        From the beginning no partition is made anew, whoever connects; if it fails, they are again.

        Raises:
            TopicNotFoundError: The topic is not partitioned.
            TopicBusyError: A partition has clients, and `force` is not set.
        """
        async with self._lock(name):
            partitions_count = await self._partitions.count(name)
            if not partitions_count:
                raise TopicNotFoundError(f"Partitioned topic {name} not found")
            names = [name.partition(index) for index in range(partitions_count)]
            if name.is_persistent:  # growing may have failed before it stored the new number
                names += await self._partitions.stored_beyond(name, partitions_count)
            if not force:
                for topic in filter(None, map(self._topics.loaded, names)):
                    topic.check_deletable()
            await self._partitions.set_being_deleted(name, is_deleted=True)
            give_up = partial(self._partitions.set_being_deleted, name, is_deleted=False)
            async with OnFailureAwait(give_up):
                await each_result(
                    lambda each: self._delete_if_there(each, force=force),
                    names,
                    at_once=TOPICS_AT_ONCE,
                )
            await self._partitions.forget(name)
            await self._topics.forget(name)

    async def forget_if_empty(self, name: TopicName) -> None:
        """Remove a partitioned topic's metadata when none of its partitions is left."""
        partitions_count = await self._partitions.count(name)
        for index in range(partitions_count):
            if await self._topics.exists(name.partition(index)):
                return
        if partitions_count:
            await self._partitions.forget(name)
            await self._topics.forget(name)

    async def _delete_if_there(self, name: TopicName, *, force: bool) -> None:
        try:
            await self._topics.delete(name, force=force)
        except TopicNotFoundError:
            return

    async def names(self, namespace: NamespaceName) -> list[str]:
        """Full names of partitioned topics (without `-partition-N`), sorted."""
        return sorted(map(str, await self._partitions.partitioned_topics(namespace)))
