"""`TopicRegistry`: loads, creates, lists, unloads and deletes the topics of a broker (edge).

A topic is in memory from its first use until it is unloaded or deleted. While it is being closed it
stays in the registry, so that it is never loaded twice; requests for it wait, or get
`ServiceNotReady`. `auto_creation` decides about names that do not exist; `PartitionedTopics` has
the corresponding operations for partitioned topics.

Source: BrokerService in Pulsar's broker.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from enum import Enum
from functools import cached_property, partial
from typing import TYPE_CHECKING, Protocol

from pulsar_py.common.errors import (
    CountLimitError,
    ManagedLedgerError,
    MetadataError,
    MetadataNotFoundError,
    NotAllowedError,
    PersistenceError,
    ServiceNotReadyError,
    StorageError,
    TopicExistsError,
    TopicFencedError,
    TopicNotFoundError,
)
from pulsar_py.common.loops.concurrently import each_result
from pulsar_py.common.loops.tasks import TaskOwner
from pulsar_py.common.loops.work import NAMES_A_TURN, in_turns
from pulsar_py.common.names import NamespaceName, TopicName
from pulsar_py.common.policies import AutoTopicCreation, TopicType
from pulsar_py.managed_ledger.opener import ManagedLedgerOpener
from pulsar_py.metadata.documents import NamespacePolicies, ResourceGroup
from pulsar_py.metadata.resources import Resources
from pulsar_py.server.policies.auto_creation import NameFacts, may_create
from pulsar_py.server.policies.effective_settings import effective_auto_creation, effective_settings
from pulsar_py.server.policies.topic_settings import TopicSettings
from pulsar_py.server.topics.partitioned_topics import PartitionedTopics
from pulsar_py.server.topics.partitions import Partitions
from pulsar_py.server.topics.registry_settings import RegistrySettings
from pulsar_py.server.topics.settings_refresh import SettingsRefresh
from pulsar_py.server.topics.topic_loads import TopicLoads
from pulsar_py.server.topics.topic_state import TopicState
from pulsar_py.server.topics.topic_watch import OnTopicsChanged, TopicWatch

if TYPE_CHECKING:
    from pulsar_py.server.topics.persistent import PersistentTopic
    from pulsar_py.server.topics.topic import Topic, TopicContext


logger = logging.getLogger(__name__)

MAX_CONCURRENT_CLOSES = 100


class TopicListMode(Enum):
    """The kinds of topics that a list has."""

    PERSISTENT = "persistent"
    NON_PERSISTENT = "non-persistent"
    ALL = "all"


class TopicOwnership(Protocol):
    """The part of the `NamespaceService` that the registry uses."""

    def is_owned(self, name: TopicName) -> bool:
        """Whether the topic's bundle is served here."""

    async def ensure_owned(self, name: TopicName) -> None:
        """Become the owner of the topic's bundle if it has none."""

    async def not_owned_error(self, name: TopicName) -> ServiceNotReadyError:
        """The error for a request for a topic that is not served here."""


class SchemaStore(Protocol):
    """The part of the `SchemaRegistry` that the registry uses."""

    async def purge(self, schema_id: str) -> None:
        """Remove all versions of a deleted topic's schema."""

    async def purge_namespace(self, namespace: NamespaceName) -> None:
        """Remove all schemas of a namespace that is being deleted."""


class PolicyKeeper(Protocol):
    """The part of the `TopicPoliciesService` that the registry uses."""

    def on_topic_loaded(self, name: TopicName) -> None:
        """A topic was loaded."""

    async def on_topic_deleted(self, name: TopicName) -> None:
        """Remove the policies of a deleted topic."""


DeleteElsewhere = Callable[[TopicName, bool], Awaitable[bool]]
"""Has the broker that serves a topic delete it, by force or not; False if this one shall."""


class TopicRegistry:
    """The topics that a broker has loaded, and those that it could load."""

    def __init__(
        self,
        *,
        managed_ledgers: ManagedLedgerOpener,
        resources: Resources,
        ownership: TopicOwnership,
        schemas: SchemaStore,
        new_context: Callable[[], TopicContext],
        settings: RegistrySettings,
        tasks: TaskOwner,
    ) -> None:
        """`new_context` is asked with the first topic for what all of them share.

        Its `on_topic_lost` must call this registry's method of that name.
        """
        self.settings = settings
        self._managed_ledgers = managed_ledgers
        self._resources = resources
        self._ownership = ownership
        self._schemas = schemas
        self.policy_keeper: PolicyKeeper | None = None
        """Keeps topics' policies in step with what others have of them; set once, by the broker."""
        self._new_context = new_context
        self._tasks = tasks
        self._topics: dict[str, Topic] = {}
        self._deleting: set[str] = set()  # being deleted without being loaded: must not be loaded
        self._unloads: dict[str, asyncio.Event] = {}  # topics being closed; set when that ended
        self._loads = TopicLoads(
            tasks,
            timeout_seconds=settings.load_timeout_seconds,
            max_concurrent_loads=settings.max_concurrent_loads,
        )
        self._partitions = Partitions(resources.local, resources, managed_ledgers.deletions)
        self.partitioned = PartitionedTopics(
            self, self._partitions, resources, ownership.ensure_owned
        )
        self._refresh = SettingsRefresh(self._settings_of, tasks)
        self._watch = TopicWatch(resources.local)
        self._watch_cancels = [
            resources.namespaces.watch(self._on_namespace_changed),
            resources.local_policies.watch(self._on_namespace_changed),
            resources.topic_policies.watch(self._on_topic_policies_changed),
            resources.global_topic_policies.watch(self._on_topic_policies_changed),
            resources.resource_groups.watch(self._on_resource_group_changed),
        ]
        self._is_closed = False
        self.delete_elsewhere: DeleteElsewhere | None = None
        """Set where there are other brokers."""

    @cached_property
    def _context(self) -> TopicContext:
        """What the topics share. The modules of what it is made of are imported with it."""
        return self._new_context()

    # --- what is loaded ----------------------------------------------------------------------

    @property
    def topics(self) -> Mapping[str, Topic]:
        """Loaded topics by full name, those being closed included."""
        return self._topics

    @property
    def loads_count(self) -> int:
        """Topics that are being loaded, or wait for that."""
        return self._loads.count

    def loaded(self, name: TopicName) -> Topic | None:
        """The topic if it is in memory and serving."""
        topic = self._topics.get(str(name))
        if topic is None or topic.state in (TopicState.CLOSING, TopicState.CLOSED):
            return None
        return topic

    async def get_or_load(self, name: TopicName, *, create_if_missing: bool) -> Topic:
        """The topic, loaded once for all callers; created if wanted and auto-creation allows it.

        If it is being unloaded, this waits and loads it again: the official C++ client does not
        retry if one of several partitions was refused.

        Raises:
            ServiceNotReadyError: The namespace is not served here, the topic is being deleted, or
                loading took too long.
            TopicNotFoundError: It is missing and may not be created, or its partition index is
                beyond the last partition.
            NotAllowedError: It is the name of a partitioned topic as a whole, or of a partition of
                a topic that is not partitioned; or the namespace has its most topics; or the
                broker does not serve topics of this domain.
            PersistenceError: The stored topic can't be read.
        """
        if not self._ownership.is_owned(name):
            raise await self._ownership.not_owned_error(name)
        text = str(name)
        if text in self._unloads:
            await self._unloads[text].wait()
        topic = self._topics.get(text)
        if topic is not None:
            if topic.state in (TopicState.CLOSING, TopicState.CLOSED):
                raise TopicFencedError(f"Topic {name} is being unloaded")
            return topic
        if text in self._deleting:
            raise TopicFencedError(f"Topic {name} is being deleted")
        joins = self._loads.is_loading(text)
        try:
            return await self._loads.load(
                text,
                partial(self._load, name, creates=create_if_missing),
                is_urgent=name.is_system,
            )
        except TopicNotFoundError:
            if not (joins and create_if_missing):
                raise
        # The load that this call joined was not allowed to create the topic, but this one is.
        return await self._loads.load(text, partial(self._load, name, creates=True))

    async def _load(self, name: TopicName, *, creates: bool) -> Topic:
        self._check_served(name)
        facts = await self.facts(name)
        namespace = await self._resources.namespaces.get(name.namespace_name)
        policy = effective_auto_creation(self.settings.auto_creation, namespace)
        creates = may_create(facts, policy, is_wanted=creates)
        if not facts.exists:
            if not creates or await self._goes(name, namespace):
                raise TopicNotFoundError(f"Topic {name} does not exist")
            if not (name.is_partition or name.is_system):
                await self.check_topics_limit(name.namespace_name, namespace, 1)
            await self._end_deletion(name)
        return await self._open(name, creates=creates)

    async def _goes(self, name: TopicName, namespace: NamespacePolicies | None) -> bool:
        """Whether nothing of the name is made any more: what it belongs to is deleted."""
        if namespace is None or namespace.is_deleted:
            return True
        return name.is_partition and await self._partitions.is_being_deleted(name.base)

    async def _open(self, name: TopicName, *, creates: bool) -> Topic:
        """Open a topic that exists or may be created."""
        topic_settings = await self._settings_of(name)
        topic: Topic
        if name.is_persistent:
            await self._check_not_refused(name)
            topic = await self._open_persistent(name, topic_settings, creates=creates)
        else:
            from pulsar_py.server.topics.non_persistent import (  # noqa: PLC0415 - at first use
                NonPersistentTopic,
            )

            topic = NonPersistentTopic(name, topic_settings, self._context)
        if self._is_closed or not self._ownership.is_owned(name):
            await topic.close()
            raise ServiceNotReadyError(f"Topic {name} is not served here any more")
        self._topics[str(name)] = topic
        if not name.is_persistent:
            self._watch.on_created(name)
        logger.info("topic loaded", extra={"topic": str(name)})
        self._refresh.mark((topic,))  # settings may have changed while it was loading
        if self.policy_keeper is not None:
            self.policy_keeper.on_topic_loaded(name)
        return topic

    async def _open_persistent(
        self, name: TopicName, settings: TopicSettings, *, creates: bool
    ) -> PersistentTopic:
        try:
            ledger = await self._managed_ledgers.open(
                name.managed_ledger_name,
                settings.managed_ledger,
                create_if_missing=creates,
                check_record=partial(self._check_record_not_refused, name),
            )
        except MetadataNotFoundError:
            raise TopicNotFoundError(f"Topic {name} does not exist") from None
        except (ManagedLedgerError, StorageError) as error:
            raise PersistenceError(f"Topic {name} can't be loaded: {error}") from error
        from pulsar_py.server.topics.persistent import (  # noqa: PLC0415 - at first use
            PersistentTopic,
        )

        try:
            return await PersistentTopic.open(name, ledger, settings, self._context)
        except BaseException as error:  # cancelled, too; raised again
            await ledger.close()
            if isinstance(error, (ManagedLedgerError, StorageError)):
                raise PersistenceError(f"Topic {name} can't be loaded: {error}") from error
            raise

    async def _check_not_refused(self, name: TopicName) -> None:
        """Return if the policies of the topic let it be served.

        Raises:
            NotAllowedError: It needs what is not there.
        """
        refused = self._context.refused
        if refused is None:
            return
        resources = self._resources
        namespace = name.namespace_name
        refused.check_policies(
            name,
            await resources.namespaces.get(namespace),
            await resources.local_policies.get(namespace),
            await self._resources.policies_of_topic(name),
        )

    def _check_record_not_refused(self, name: TopicName, value: bytes) -> None:
        """Return if the topic's list of ledgers lets it be served.

        Raises:
            NotAllowedError: It needs what is not there.
        """
        if self._context.refused is not None:
            self._context.refused.check_record(name, value)

    def _check_served(self, name: TopicName) -> None:
        if self._is_closed:
            raise ServiceNotReadyError("the broker is shutting down")
        serves = (
            self.settings.serves_persistent
            if name.is_persistent
            else self.settings.serves_non_persistent
        )
        if not serves:
            raise NotAllowedError(f"Broker is not serving {name.domain} topics")

    async def facts(self, name: TopicName) -> NameFacts:
        """The facts about a name: whether such a topic exists, and how many partitions."""
        exists = str(name) in self._topics or await self._partitions.is_stored(name)
        partitions_count = 0 if exists else await self._partitions.count(name.base)
        return NameFacts(name=name, exists=exists, partitions_count=partitions_count)

    async def check_topics_limit(
        self, namespace: NamespaceName, policies: NamespacePolicies | None, added_count: int
    ) -> None:
        """Raise if the namespace may not have that many more topics."""
        limit = self.settings.max_topics_per_namespace
        if policies is not None and policies.max_topics_per_namespace is not None:
            limit = policies.max_topics_per_namespace
        if limit <= 0 or namespace.is_system:
            return
        stored = await self._partitions.stored_topics(namespace)
        if sum(not each.is_system for each in stored) + added_count > limit:
            raise CountLimitError("Exceed maximum number of topics in namespace.")

    # --- settings ----------------------------------------------------------------------------

    async def _settings_of(self, name: TopicName) -> TopicSettings:
        namespace = await self._resources.namespaces.get(name.namespace_name)
        own = None
        if self.settings.has_topic_policies:
            own = await self._resources.policies_of_topic(name)
        local = await self._resources.local_policies.get(name.namespace_name)
        settings = effective_settings(self.settings.topic, namespace, own, local)
        if settings.resource_group and self._context.limits is not None:
            group = await self._resources.resource_groups.get(settings.resource_group)
            self._context.limits.group(settings.resource_group).apply(group)
        return settings

    def apply_settings(self, settings: RegistrySettings) -> None:
        """Use changed settings of the broker, in running topics, too."""
        self.settings = settings
        self._loads.set_max_concurrent_loads(settings.max_concurrent_loads)
        self._reapply(lambda _: True)

    def _on_namespace_changed(self, namespace: NamespaceName, _: object) -> None:
        self._reapply(lambda name: name.namespace_name == namespace)

    def _on_topic_policies_changed(self, changed: TopicName, _: object) -> None:
        self._reapply(lambda name: name.base == changed)

    def _on_resource_group_changed(self, name: str, group: ResourceGroup | None) -> None:
        if self._context.limits is not None:
            self._context.limits.on_group_changed(name, group)

    def _reapply(self, concerns: Callable[[TopicName], bool]) -> None:
        if not self._is_closed:
            self._refresh.mark(topic for topic in self._topics.values() if concerns(topic.name))

    # --- create and delete -------------------------------------------------------------------

    async def exists(self, name: TopicName) -> bool:
        """Whether the (non-partitioned) topic is stored or loaded."""
        return str(name) in self._topics or await self._partitions.is_stored(name)

    async def create_topic(
        self, name: TopicName, *, properties: Mapping[str, str] | None = None
    ) -> Topic:
        """Create a topic without partitions, whatever auto-creation says.

        `properties` are kept with the list of its ledgers.

        Raises:
            TopicExistsError: The topic exists already, or is partitioned.
            TopicNotFoundError: There is no such namespace, or the partition is beyond the last one.
            NotAllowedError: The namespace has its most topics, or it is the name of a partition of
                a topic that is not partitioned.
            ServiceNotReadyError: Another broker serves the name's bundle.
        """
        await self._own(name)
        self._check_served(name)
        facts = await self.facts(name)
        if facts.exists or (facts.partitions_count and not name.is_partition):
            raise TopicExistsError(f"Topic {name} exists already")
        allows = AutoTopicCreation(
            is_allowed=True, topic_type=TopicType.NON_PARTITIONED, default_partitions_count=1
        )
        may_create(facts, allows, is_wanted=True)
        namespace = await self._resources.namespaces.get(name.namespace_name)
        if await self._goes(name, namespace):
            raise TopicNotFoundError("Namespace not found")
        if not name.is_partition:
            await self.check_topics_limit(name.namespace_name, namespace, 1)
        await self._end_deletion(name)
        topic = await self._loads.load(str(name), partial(self._open, name, creates=True))
        from pulsar_py.server.topics.persistent import (  # noqa: PLC0415 - at first use
            PersistentTopic,
        )

        if isinstance(topic, PersistentTopic):
            for key, value in (properties or {}).items():
                await topic.ledger.set_property(key, value)
        return topic

    async def delete(self, name: TopicName, *, force: bool = False) -> None:
        """Delete a topic, loaded or not, with its policies and schemas.

        Raises:
            TopicNotFoundError: There is none.
            TopicBusyError: It has clients, and `force` is not set.
            NotAllowedError: It is the name of a partitioned topic as a whole.
            ServiceNotReadyError: Another broker serves it, or it is closing.
        """
        if await self._partitions.count(name):
            raise NotAllowedError(
                f"{name} is a partitioned topic: delete it as such, or a single partition"
            )
        if self.delete_elsewhere is not None and await self.delete_elsewhere(name, force):
            return
        await self._own(name)
        await self._delete(name, force=force)
        if not name.is_partition:
            await self.forget(name)

    async def _end_deletion(self, name: TopicName) -> None:
        """Finish a deletion that was cut short, before a topic of that name is made again."""
        if not name.is_persistent or not await self._partitions.is_cut_short(name):
            return
        if str(name) not in self._topics and str(name) not in self._deleting:  # else it goes on
            with suppress(TopicNotFoundError):  # it is finished by now
                await self._delete_stored(name)

    async def end_deletions(self, namespace: NamespaceName) -> None:
        """Finish deletions of topics that were cut short, where no topic is left; no schema stays.

        Raises:
            ServiceNotReadyError: Another broker serves one of them, or it is closing.
        """
        for name in await self._partitions.cut_short(namespace):
            with suppress(TopicNotFoundError):  # it is finished by now
                await self.delete(name, force=True)
        await self._schemas.purge_namespace(namespace)

    async def _own(self, name: TopicName) -> None:
        """Own the topic: opening the ledger of another broker's would fence it.

        Raises:
            ServiceNotReadyError: Another broker does.
        """
        await self._ownership.ensure_owned(name)
        if not self._ownership.is_owned(name):
            raise await self._ownership.not_owned_error(name)

    async def _delete(self, name: TopicName, *, force: bool) -> None:
        await self._loads.settled(str(name))
        topic = self._topics.get(str(name))
        if topic is not None:
            await topic.delete(force=force)
            self._drop(topic)
            if not name.is_persistent:
                self._watch.on_deleted(name)
            logger.info("topic deleted", extra={"topic": str(name)})
            return
        if not name.is_persistent:
            raise TopicNotFoundError(f"Topic {name} not found")
        await self._delete_stored(name)

    async def _delete_stored(self, name: TopicName) -> None:
        """Delete a topic that is not loaded, and keep it from being loaded meanwhile.

        Raises:
            TopicNotFoundError: There is none. A deletion that was cut short is finished before.
        """
        if str(name) in self._deleting:
            raise TopicFencedError(f"Topic {name} is being deleted")
        self._deleting.add(str(name))
        is_cut_short = False
        try:
            is_cut_short = await self._partitions.is_cut_short(name)
            settings = await self._settings_of(name)
            await self._managed_ledgers.delete(name.managed_ledger_name, settings.managed_ledger)
        except MetadataNotFoundError:
            if is_cut_short and not name.is_partition:
                await self.forget(name)
            raise TopicNotFoundError(f"Topic {name} not found") from None
        finally:
            self._deleting.discard(str(name))

    async def forget(self, name: TopicName) -> None:
        """Remove the policies and schemas of a whole topic, partitions included."""
        if self.policy_keeper is not None:
            await self.policy_keeper.on_topic_deleted(name)
        await self._schemas.purge(name.schema_id)

    # --- unload ------------------------------------------------------------------------------

    async def unload(self, name: TopicName) -> None:
        """Close one topic; its clients get CLOSE_PRODUCER and CLOSE_CONSUMER and reconnect.

        Raises:
            TopicNotFoundError: It is not loaded.
        """
        topic = self._topics.get(str(name))
        if topic is None:
            raise TopicNotFoundError(f"Topic {name} is not loaded")
        await self._close_topic(topic)

    async def close_topics(
        self, namespace: NamespaceName, concerns: Callable[[TopicName], bool]
    ) -> None:
        """Close the topics of a namespace for which `concerns` holds, many at a time."""
        topics = [
            topic
            for topic in self._topics.values()
            if topic.name.namespace_name == namespace and concerns(topic.name)
        ]
        await each_result(self._close_topic, topics, at_once=MAX_CONCURRENT_CLOSES)

    def lose_topics(self, namespace: NamespaceName, concerns: Callable[[TopicName], bool]) -> None:
        """Close topics that another broker owns, those for which `concerns` holds, soon.

        Clients get CLOSE_PRODUCER and CLOSE_CONSUMER; nothing is written.
        """
        for topic in list(self._topics.values()):
            if topic.name.namespace_name == namespace and concerns(topic.name):
                topic.lose()

    async def _close_topic(self, topic: Topic) -> None:
        """Close a topic; it leaves memory even if that fails, so that it can be loaded again."""
        ended = self._unloads.setdefault(str(topic.name), asyncio.Event())
        try:
            await topic.close()
        except (ManagedLedgerError, MetadataError, StorageError) as error:
            logger.warning(
                "topic not closed cleanly", extra={"topic": str(topic.name), "error": str(error)}
            )
        finally:
            self._drop(topic)
            self._unloads.pop(str(topic.name), None)
            ended.set()
        logger.info("topic unloaded", extra={"topic": str(topic.name)})

    def on_topic_lost(self, topic: Topic) -> None:
        """Close a topic in the background: another owner has it."""
        if self._topics.get(str(topic.name)) is topic and not self._is_closed:
            self._tasks.spawn(self._close_topic(topic), f"give up {topic.name}")

    def _drop(self, topic: Topic) -> None:
        if self._topics.get(str(topic.name)) is topic:
            del self._topics[str(topic.name)]

    # --- lists -------------------------------------------------------------------------------

    async def list_topics(
        self,
        namespace: NamespaceName,
        mode: TopicListMode = TopicListMode.ALL,
        *,
        includes_system: bool = False,
    ) -> list[str]:
        """Full names of topics, sorted; partitions are listed one by one.

        System topics are left out unless `includes_system`.
        """
        names: list[TopicName] = []
        if mode is not TopicListMode.NON_PERSISTENT:
            names += await self._partitions.stored_topics(namespace)
        if mode is not TopicListMode.PERSISTENT:
            names += [
                topic.name
                for topic in self._topics.values()
                if not topic.name.is_persistent and topic.name.namespace_name == namespace
            ]
        shown: list[str] = []
        async for some in in_turns(names, NAMES_A_TURN):
            shown += [str(name) for name in some if includes_system or not name.is_system]
        return sorted(shown)

    def watch(self, namespace: NamespaceName, callback: OnTopicsChanged) -> Callable[[], None]:
        """Call `callback` with full names of created and deleted topics; returns what ends that."""
        return self._watch.watch(namespace, callback)

    async def close(self) -> None:
        """Refuse further loads, and close all topics."""
        self._is_closed = True
        for cancel in self._watch_cancels:
            cancel()
        self._watch.close()
        for topic in list(self._topics.values()):
            await self._close_topic(topic)
