"""All topics of a broker: load, create, list, unload, delete; partitions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum

from pulsar_py.common.names import NamespaceName, TopicName
from pulsar_py.server.topics.topic import Topic

OnTopicsChanged = Callable[[Sequence[str], Sequence[str]], None]


class TopicListMode(Enum):
    """Which topics of a namespace are listed."""

    PERSISTENT = "persistent"
    NON_PERSISTENT = "non-persistent"
    ALL = "all"


class TopicRegistry:
    """The topics this broker has loaded, and those it could load."""

    @property
    def topics(self) -> Mapping[str, Topic]:
        """Loaded topics by full name."""
        raise NotImplementedError

    def loaded(self, name: TopicName) -> Topic | None:
        """The topic if it is in memory and serving."""
        raise NotImplementedError

    async def get_or_load(self, name: TopicName, *, create_if_missing: bool) -> Topic:
        """The topic, loaded once however many ask; created if wanted and auto-creation allows.

        Raises:
            ServiceNotReadyError: The namespace is not served here, the topic is closing, or
                loading took too long.
            TopicNotFoundError: It is missing and may not be created, or its partition index is
                beyond the partitioned topic.
            NotAllowedError: It is the name of a partitioned topic, or of a partition of nothing;
                or the namespace is full.
        """
        raise NotImplementedError

    async def partitions_of(self, name: TopicName) -> int:
        """Number of partitions, 0 when the topic is not partitioned or does not exist."""
        raise NotImplementedError

    async def fetch_partitions(self, name: TopicName, *, auto_create: bool) -> int:
        """Answer to PARTITIONED_METADATA; may create partitioned metadata by policy.

        Raises:
            TopicNotFoundError: Missing and not creatable, or a missing namespace.
        """
        raise NotImplementedError

    async def exists(self, name: TopicName) -> bool:
        """Whether the (non-partitioned) topic is stored or loaded."""
        raise NotImplementedError

    async def create_topic(
        self, name: TopicName, *, properties: Mapping[str, str] | None = None
    ) -> Topic:
        """Create a topic without partitions, whatever auto-creation says; properties go to its ledger.

        Raises:
            TopicExistsError, NotAllowedError, TopicNotFoundError
        """
        raise NotImplementedError

    async def create_partitioned(
        self,
        name: TopicName,
        partitions_count: int,
        *,
        properties: Mapping[str, str] | None = None,
        is_local_only: bool = False,
    ) -> None:
        """Create metadata and partitions.

        Raises:
            TopicExistsError, NotAllowedError
        """
        raise NotImplementedError

    async def update_partitions(self, name: TopicName, partitions_count: int) -> None:
        """Grow; existing subscriptions appear on the new partitions at Earliest."""
        raise NotImplementedError

    async def delete(self, name: TopicName, *, force: bool = False) -> None:
        """Delete a topic, loaded or not.

        Raises:
            TopicNotFoundError, TopicBusyError
        """
        raise NotImplementedError

    async def delete_partitioned(self, name: TopicName, *, force: bool = False) -> None:
        """Delete all partitions, then the metadata."""
        raise NotImplementedError

    async def unload(self, name: TopicName) -> None:
        """Close one topic; its clients look it up again.

        Raises:
            TopicNotFoundError: It is not loaded.
        """
        raise NotImplementedError

    async def list_topics(
        self,
        namespace: NamespaceName,
        mode: TopicListMode = TopicListMode.ALL,
        *,
        includes_system: bool = False,
    ) -> list[str]:
        """Full names, sorted; partitions one by one; system topics left out by default."""
        raise NotImplementedError

    async def list_partitioned(self, namespace: NamespaceName) -> list[str]:
        """Full names of partitioned topics (without `-partition-N`), sorted."""
        raise NotImplementedError

    def watch(self, namespace: NamespaceName, callback: OnTopicsChanged) -> Callable[[], None]:
        """Tell of created and deleted topics (full names); returns what ends the watch."""
        raise NotImplementedError
