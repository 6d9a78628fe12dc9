"""`Partitions`: the metadata of partitioned topics and of stored topics (edge).

A partitioned topic is a number in the metadata store; its partitions are topics like others. This
module loads none of them.

Source: PartitionedTopicResources, TopicResources in Pulsar's broker.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Final

from pulsar_py.common.errors import (
    MetadataExistsError,
    MetadataNotFoundError,
    NotAllowedError,
    TopicExistsError,
    TopicNotFoundError,
)
from pulsar_py.common.loops.concurrently import each_result
from pulsar_py.common.loops.work import NAMES_A_TURN, in_turns
from pulsar_py.common.names import NamespaceName, TopicName, url_form_decode
from pulsar_py.managed_ledger.cut_short_deletions import CutShortDeletions
from pulsar_py.managed_ledger.log.ledger_format import is_deletion_begun
from pulsar_py.managed_ledger.log.list_deletion import remove_marked
from pulsar_py.managed_ledger.log.owned_record import OwnedRecord, nobody_else
from pulsar_py.metadata import paths
from pulsar_py.metadata.documents import PartitionedTopicMetadata
from pulsar_py.metadata.resources import Resources
from pulsar_py.metadata.settling import put_settled
from pulsar_py.metadata.store import MUST_NOT_EXIST, MetadataStore
from pulsar_py.server.publishing.deduplication import CURSOR_NAME

TOPICS_AT_ONCE: Final = 50
"""Topics that are created or deleted at the same time: a few milliseconds of the loop's time."""


class Partitions:
    """The metadata of a broker's topics; owned by its `TopicRegistry`."""

    def __init__(
        self, metadata: MetadataStore, resources: Resources, deletions: CutShortDeletions
    ) -> None:
        self._metadata = metadata
        self._deletions = deletions
        self._resources = resources

    async def count(self, name: TopicName) -> int:
        """Number of partitions, 0 for other topics."""
        metadata = await self._resources.partitioned_topics.get(name)
        return (metadata.partitions_count or 0) if metadata is not None else 0

    async def is_stored(self, name: TopicName) -> bool:
        """Whether a persistent topic exists; one whose deletion was interrupted does not."""
        if not name.is_persistent:
            return False
        found = await self._metadata.get(paths.managed_ledger(name.managed_ledger_name))
        return found is not None and not is_deletion_begun(found.value)

    async def stored_topics(self, namespace: NamespaceName) -> list[TopicName]:
        """The persistent topics of a namespace, sorted; partitions are listed one by one.

        Those whose deletion was interrupted are left out.
        """
        path = paths.managed_ledgers(namespace)
        names = await self._metadata.children(path)
        deleted = await self._deletions.below(path)
        topics: list[TopicName] = []
        async for some in in_turns(names, NAMES_A_TURN):
            topics += [
                namespace.topic(url_form_decode(name)) for name in some if name not in deleted
            ]
        return sorted(topics, key=str)

    async def is_cut_short(self, name: TopicName) -> bool:
        """Whether the deletion of a persistent topic was interrupted."""
        found = await self._metadata.get(paths.managed_ledger(name.managed_ledger_name))
        return found is not None and is_deletion_begun(found.value)

    async def cut_short(self, namespace: NamespaceName) -> list[TopicName]:
        """The persistent topics of a namespace whose deletion was interrupted; reads all lists."""
        names = await self._metadata.children(paths.managed_ledgers(namespace))
        topics = [namespace.topic(url_form_decode(name)) for name in names]
        return [topic for topic in topics if await self.is_cut_short(topic)]

    async def partitioned_topics(self, namespace: NamespaceName) -> list[TopicName]:
        """The partitioned topics of a namespace, of both domains."""
        return await self._resources.partitioned_topics.list(namespace)

    async def put_count(
        self, name: TopicName, partitions_count: int, properties: Mapping[str, str] | None = None
    ) -> None:
        """Make a topic partitioned.

        Raises:
            TopicExistsError: The topic is partitioned already.
        """
        metadata = PartitionedTopicMetadata(partitions_count=partitions_count)
        if properties:
            metadata = metadata.replace(properties=properties)
        try:
            await self._resources.partitioned_topics.create(name, metadata)
        except MetadataExistsError:
            raise TopicExistsError(f"{name} is partitioned already") from None

    async def stored_beyond(self, name: TopicName, partitions_count: int) -> list[TopicName]:
        """Stored topics that are named like partitions of `name`, beyond that many."""
        found: list[TopicName] = []
        async for some in in_turns(await self.stored_topics(name.namespace_name), NAMES_A_TURN):
            found += [
                each
                for each in some
                if each.partition_index >= partitions_count and each.base == name
            ]
        return found

    async def count_to_grow(self, name: TopicName, partitions_count: int) -> int:
        """The number of partitions, if the topic may have so many.

        Raises:
            TopicNotFoundError: The topic is not partitioned.
            NotAllowedError: There are more already.
        """
        current = await self.count(name)
        if not current:
            raise TopicNotFoundError(f"{name} is not a partitioned topic")
        _check_grows(name, current, partitions_count)
        return current

    async def grow(self, name: TopicName, partitions_count: int) -> None:
        """Change the number of partitions.

        Raises:
            TopicNotFoundError: The topic is not partitioned.
            NotAllowedError: There are more already.
        """
        await self.count_to_grow(name, partitions_count)

        def change(metadata: PartitionedTopicMetadata) -> PartitionedTopicMetadata:
            _check_grows(name, metadata.partitions_count or 0, partitions_count)
            return metadata.replace(partitions_count=partitions_count)

        await self._resources.partitioned_topics.update(name, change)

    async def is_being_deleted(self, name: TopicName) -> bool:
        """Whether the deletion of a partitioned topic has begun."""
        metadata = await self._resources.partitioned_topics.get(name)
        return metadata is not None and bool(metadata.is_deleted)

    async def set_being_deleted(self, name: TopicName, *, is_deleted: bool) -> None:
        """Store that the deletion of a partitioned topic begins, or was given up."""
        with suppress(MetadataNotFoundError):
            await self._resources.partitioned_topics.update(
                name, lambda metadata: metadata.replace(is_deleted=is_deleted)
            )

    async def forget(self, name: TopicName) -> None:
        """Remove the stored number of partitions."""
        await self._resources.partitioned_topics.delete(name)

    async def create_stored(self, names: Iterable[TopicName]) -> None:
        """Store persistent topics, without ledgers yet; existing ones stay as they are.

        However many there are, the loop is not blocked meanwhile.
        """
        await each_result(self._create_stored, names, at_once=TOPICS_AT_ONCE)

    async def _create_stored(self, name: TopicName) -> None:
        path = paths.managed_ledger(name.managed_ledger_name)
        try:
            await put_settled(self._metadata, path, b"", expected_version=MUST_NOT_EXIST)
        except MetadataExistsError:
            found = await self._metadata.get(path)
            if found is not None and not is_deletion_begun(found.value):
                return
            if found is not None:  # an earlier deletion was interrupted: it is finished first
                marked = OwnedRecord(self._metadata, path)
                marked.found(found)
                await remove_marked(self._metadata, marked, nobody_else)
            with suppress(MetadataExistsError):  # somebody else created it at the same time
                await put_settled(self._metadata, path, b"", expected_version=MUST_NOT_EXIST)

    async def stored_subscriptions(self, name: TopicName, replicator_prefix: str) -> list[str]:
        """Names of a persistent topic's durable subscriptions."""
        path = paths.managed_ledger(name.managed_ledger_name)
        names = map(url_form_decode, await self._metadata.children(path))
        return [
            each for each in names if each != CURSOR_NAME and not each.startswith(replicator_prefix)
        ]


def _check_grows(name: TopicName, current: int, partitions_count: int) -> None:
    if partitions_count < current:
        raise NotAllowedError(
            f"{name} can't have {partitions_count} partitions: it has {current} already, "
            "and partitions can't be removed"
        )
