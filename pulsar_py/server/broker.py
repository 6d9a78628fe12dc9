"""`BrokerService`: the broker without its sockets and HTTP (edge).

It builds topics, namespaces, schemas, connections and their timers from the two stores and a
`BrokerConfig`. Everything below gets plain values with units in their names: beside this module
only the composition (`standalone.py`, `cli/standalone.py`) may import that class, which a test
checks; the resources of `admin` read single settings as `broker.config`. `BrokerService` starts and
stops everything above the storage; the owner of the stores closes them afterwards.

Order of stopping: lookups are refused, every topic is unloaded with all its cursors written, its
bundles are given up, connections closed.

Source: PulsarService, BrokerService in Pulsar's broker.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from pulsar_py.common.disks.copied_file import BackupSource
from pulsar_py.common.errors import ConfigurationError, ServiceMetadataError, ServiceNotReadyError
from pulsar_py.common.loops.clock import Clock
from pulsar_py.common.loops.loop_lag import LoopLag
from pulsar_py.common.loops.tasks import TaskOwner
from pulsar_py.ledgers.store import LedgerOptions, LedgerStore
from pulsar_py.managed_ledger.log.config import MEBIBYTE
from pulsar_py.managed_ledger.opener import ManagedLedgerOpener
from pulsar_py.metadata.documents import DynamicConfiguration
from pulsar_py.metadata.resources import Resources
from pulsar_py.metadata.store import MetadataStore
from pulsar_py.server.broker_settings import (
    bucket_settings,
    call_settings,
    compaction_rules,
    connection_settings,
    registry_settings,
)
from pulsar_py.server.bundle_moves import BundleMoves
from pulsar_py.server.change_events.event_parts import EventParts
from pulsar_py.server.change_events.topic_policies_service import TopicPoliciesService
from pulsar_py.server.compaction.compaction_status import CompactionTotals
from pulsar_py.server.compaction.spill_directory import SpillDirectory
from pulsar_py.server.config import BrokerConfig
from pulsar_py.server.connection.connections import Connections
from pulsar_py.server.elsewhere import Elsewhere
from pulsar_py.server.hooks.broker_hooks import BrokerHooks
from pulsar_py.server.hooks.contained import HookErrors
from pulsar_py.server.hooks.installed_filters import InstalledFilters
from pulsar_py.server.hooks.interceptors import Interceptors
from pulsar_py.server.ledger_collector import LedgerCollector
from pulsar_py.server.limits.broker_limits import BrokerLimits
from pulsar_py.server.limits.in_flight import PublishBuffer
from pulsar_py.server.load.other_brokers import OtherBrokers
from pulsar_py.server.namespaces.joining import first_report
from pulsar_py.server.namespaces.lookup import LocalAddresses
from pulsar_py.server.namespaces.service import NamespaceService
from pulsar_py.server.publishing.producer_names import ProducerNames
from pulsar_py.server.schema_registry import SchemaRegistry
from pulsar_py.server.security.audit import Audit
from pulsar_py.server.security.authentication import Authenticators
from pulsar_py.server.security.authorization import Authorization
from pulsar_py.server.security_parts import authorization_of, authorization_settings
from pulsar_py.server.topics.refused_topics import RefusedTopics
from pulsar_py.server.topics.registry import TopicRegistry
from pulsar_py.server.upkeep.maintenance import Chore, Maintenance

if TYPE_CHECKING:
    from pulsar_py.server.cluster_load import ClusterLoad
    from pulsar_py.server.load.cluster_membership import ClusterMembership
    from pulsar_py.server.topics.persistent import PersistentTopic
    from pulsar_py.server.topics.topic import Topic, TopicContext

logger = logging.getLogger(__name__)

HEALTH_PATH = "/pulsar_py/health"
"""The parent of one key for each broker, named by the address of its web service."""


class BrokerService:
    """One broker; its owner closes the metadata stores and the ledger store after it."""

    def __init__(
        self,
        config: BrokerConfig,
        *,
        ledger_store: LedgerStore,
        metadata: MetadataStore,
        configuration_metadata: MetadataStore,
        clock: Clock,
        chance: random.Random | None = None,
        ledger_options: LedgerOptions | None = None,
        is_of_cluster: bool = False,
        authenticators: Authenticators | None = None,
        temporary_directory: Path | None = None,
    ) -> None:
        """`metadata` is the local store, `configuration_metadata` the one that clusters share.

        `ledger_options` are for new ledgers of topics without a policy about it; None: one copy. If
        `is_of_cluster`, the broker refuses topics whose stored state another one left and this one
        can't continue. `authenticators` take the place of those that `config` names.

        Raises:
            ConfigurationError: Authentication or authorization can't be set up.
        """
        self.config = config
        self.clock = clock
        self.compaction_totals = CompactionTotals()
        self.hooks = broker_hooks(config, clock)
        is_own = not config.topicCompactionSpillDirectory and temporary_directory is not None
        self._spill = SpillDirectory(
            str(temporary_directory) if is_own else config.topicCompactionSpillDirectory,
            makes_parent=is_own,
        )
        self._ledger_options = ledger_options or LedgerOptions()
        self.refused_topics = RefusedTopics(config.clusterName) if is_of_cluster else None
        self._file_config = config  # without what was changed while running
        self.metadata, self.ledger_store = metadata, ledger_store
        # Set by the composition, where the stores keep files of their own.
        self.backups: BackupSource | None = None
        self._tasks = TaskOwner("broker")
        self.resources = Resources(metadata, configuration_metadata)
        chance = chance or random.Random()  # noqa: S311 - spreads load and rollovers, guards nothing
        # None where there are no other brokers.
        self.membership = self._new_membership(chance) if is_of_cluster else None
        self.cluster_load: ClusterLoad | None = None  # None before it has joined
        self.namespaces = NamespaceService(
            metadata,
            self.resources,
            default_bundles_count=config.defaultNumberOfNamespaceBundles,
            membership=self.membership,
            clock=clock,
        )
        self.managed_ledgers = self._managed_ledger_opener(config, chance)
        self.schemas = self._new_schema_registry(config)
        self.ledger_collector = self._new_ledger_collector(config)
        self.loop_lag = LoopLag(clock)
        self.publish_buffer = PublishBuffer(config.maxMessagePublishBufferSizeInMB * MEBIBYTE)
        self.limits = BrokerLimits(clock)
        self._set_limits(config)
        self._producer_names = ProducerNames(metadata, config.clusterName)
        self.topics = TopicRegistry(
            managed_ledgers=self.managed_ledgers,
            resources=self.resources,
            ownership=self.namespaces,
            schemas=self.schemas,
            new_context=lambda: self._topic_context(config),
            settings=registry_settings(config, self._ledger_options),
            tasks=self._tasks,
        )
        self.topic_policies = self._topic_policies_service(config)
        self.topics.policy_keeper = self.topic_policies
        self.authenticators = authenticators or self._authenticators(config)
        self.authorization = self._authorization(config)
        self.audit = Audit(clock, config.authenticationRoleLoggingAnonymizer)
        self.connections = self._new_connections(config)
        self.other_brokers = OtherBrokers(call_settings(config))
        self.elsewhere = Elsewhere(self.namespaces, self.other_brokers)
        self.topics.delete_elsewhere = self.elsewhere.delete_topic
        self.topics.partitioned.others = self.elsewhere
        self.bundle_moves = self._new_bundle_moves()
        self.maintenance = Maintenance(self._chores(config), self.topics.topics.values, clock)

    def _new_membership(self, chance: random.Random) -> ClusterMembership:
        from pulsar_py.server.cluster_load import cluster_membership  # noqa: PLC0415 - at first use

        return cluster_membership(
            self.metadata, self.resources, self.clock, chance, lambda: self.config
        )

    def _topic_policies_service(self, config: BrokerConfig) -> TopicPoliciesService:
        parts = EventParts(
            topics=self.topics,
            ownership=self.namespaces,
            resources=self.resources,
            schemas=self.schemas,
            cluster=config.clusterName,
            tasks=self._tasks,
        )
        return TopicPoliciesService(parts, lambda: self.topics.settings.has_topic_policies)

    def _managed_ledger_opener(
        self, config: BrokerConfig, chance: random.Random
    ) -> ManagedLedgerOpener:
        return ManagedLedgerOpener(
            self.ledger_store,
            self.metadata,
            self.clock,
            chance=chance,
            cache_size_bytes=config.managedLedgerCacheSizeMB * MEBIBYTE,
            cache_eviction_watermark=config.managedLedgerCacheEvictionWatermark,
            cache_max_age_seconds=config.managedLedgerCacheEvictionTimeThresholdMillis / 1000,
            cache_eviction_interval_seconds=config.managedLedgerCacheEvictionIntervalMs / 1000,
            cursor_memory_bytes=config.managedLedgerCursorMemorySizeMB * MEBIBYTE,
            owns=self.namespaces.still_owns,
            check_owner=self.namespaces.check_owner,
            may_change=self.namespaces.may_change,
        )

    def _new_schema_registry(self, config: BrokerConfig) -> SchemaRegistry:
        return SchemaRegistry(
            self.metadata,
            self.ledger_store,
            self.clock,
            cluster=config.clusterName,
            ledger_options=replace(self._ledger_options, password=b""),
        )

    def _new_ledger_collector(self, config: BrokerConfig) -> LedgerCollector:
        return LedgerCollector(
            self.ledger_store,
            [self.managed_ledgers.named_ledgers, self.schemas.named_ledgers],
            self.clock,
            cluster=config.clusterName,
            may_run=lambda: self.membership is None or self.membership.is_leader,
        )

    def _new_connections(self, config: BrokerConfig) -> Connections:
        return Connections(
            topics=self.topics,
            namespaces=self.namespaces,
            schemas=self.schemas,
            publish_buffer=self.publish_buffer,
            clock=self.clock,
            settings=connection_settings(config),
            authenticators=self.authenticators,
            authorization=self.authorization,
            resources=self.resources,
            interceptors=self.hooks.interceptors,
            audit=self.audit,
        )

    def _new_bundle_moves(self) -> BundleMoves:
        return BundleMoves(
            namespaces=self.namespaces,
            topics=self.topics,
            connections=self.connections,
            membership=self.membership,
            others=self.other_brokers,
            split_algorithm=lambda: self.config.defaultNamespaceBundleSplitAlgorithm.value,
        )

    def _authenticators(self, config: BrokerConfig) -> Authenticators:
        if not config.authenticationEnabled:
            return Authenticators()
        from pulsar_py.server.authentication_parts import (  # noqa: PLC0415 - at first use
            configured_authenticators,
        )

        return configured_authenticators(config, self.clock)

    def _authorization(self, config: BrokerConfig) -> Authorization:
        return authorization_of(
            config,
            self.authenticators,
            self.resources,
            lambda: authorization_settings(self.config),
        )

    def _topic_context(self, config: BrokerConfig) -> TopicContext:
        """What topics share; a broker that nobody talks to does not import what it is made of."""
        from pulsar_py.server.compaction.topic_compaction import (  # noqa: PLC0415 - at first use
            CompactionParts,
        )
        from pulsar_py.server.delayed.delayed_index import (  # noqa: PLC0415 - at first use
            DelayedIndexParts,
        )
        from pulsar_py.server.dispatch.unacked_limits import (  # noqa: PLC0415 - at first use
            BrokerUnackedLimit,
        )
        from pulsar_py.server.topics.topic import TopicContext  # noqa: PLC0415 - at first use
        from pulsar_py.wire.commands import SendReceiptEncoder  # noqa: PLC0415 - at first use

        return TopicContext(
            clock=self.clock,
            tasks=self._tasks,
            new_producer_name=self._producer_names.new_name,
            on_topic_lost=self._on_topic_lost,
            receipts=SendReceiptEncoder(),
            refused=self.refused_topics,
            limits=self.limits,
            hooks=self.hooks,
            compaction=CompactionParts(
                ledger_store=self.ledger_store,
                disk=self._spill.disk,
                clock=self.clock,
                rules=lambda: compaction_rules(self.config),
                memory_bytes=lambda: self.config.topicCompactionMaxMemoryMB * MEBIBYTE,
                read_timeout_seconds=lambda: (
                    self.config.brokerServiceCompactionPhaseOneLoopTimeInSeconds
                ),
                totals=self.compaction_totals,
            ),
            delayed_index=DelayedIndexParts(
                ledger_store=self.ledger_store,
                clock=self.clock,
                settings=lambda: bucket_settings(self.config),
            ),
            unacked_limit=BrokerUnackedLimit(
                max_unacked_messages=config.maxUnackedMessagesPerBroker,
                blocked_share=config.maxUnackedMessagesPerSubscriptionOnBrokerBlocked,
            ),
        )

    @property
    def addresses(self) -> LocalAddresses:
        """The addresses of this broker."""
        return self.namespaces.addresses

    def set_addresses(self, addresses: LocalAddresses) -> None:
        """Set the addresses of the bound listeners; call it before the first lookup."""
        self.namespaces.set_addresses(addresses)

    async def start(self) -> None:
        """Open a metadata session, start the timers; afterwards lookups and topics work."""
        await self._spill.remove_leftovers()
        self.resources.dynamic_configuration.watch(lambda _, value: self._on_dynamic(value))
        await self.apply_dynamic_configuration()
        await self.namespaces.start(self.topics.close_topics, self.topics.lose_topics)
        self.managed_ledgers.deletions.begin(self._tasks)
        self._tasks.spawn(self.maintenance.run(), "maintenance")
        self._tasks.spawn(self.ledger_collector.run(), "ledger collector")
        self.connections.start()

    async def join_cluster(self) -> None:
        """Become one of the brokers of the cluster, once the addresses are set.

        Does nothing where there are no others. Lookups work only afterwards.

        Raises:
            MetadataError: The store can't be read or written now.
        """
        if self.membership is None:
            return
        from pulsar_py.server.cluster_load import ClusterLoad  # noqa: PLC0415 - loaded by now

        report = first_report(self.addresses, start_millis=self.clock.wall_time_millis())
        await self.membership.join(report)
        await self.namespaces.own_heartbeat(report.broker_id)
        self.cluster_load = ClusterLoad(
            membership=self.membership,
            namespaces=self.namespaces,
            topics=self.topics,
            moves=self.bundle_moves,
            metadata=self.metadata,
            clock=self.clock,
            config=lambda: self.config,
        )
        self.cluster_load.start(self._tasks)

    async def hand_over(self) -> None:
        """Leave the cluster, and give all bundles to other brokers, while connections stay open.

        From then on lookups name other brokers. Does nothing where there are none.
        """
        if self.membership is None or not self.membership.is_joined:
            return
        timeout_seconds = self.config.brokerShutdownTimeoutMs / 1000
        try:
            async with asyncio.timeout(timeout_seconds):
                await self.membership.leave()
                await self.bundle_moves.hand_over(self.clock)
        except TimeoutError:
            logger.warning("bundles not handed over", extra={"seconds": timeout_seconds})

    async def apply_dynamic_configuration(self) -> None:
        """Use the settings that are stored for all brokers now.

        Raises:
            MetadataError: They can't be read.
        """
        self._on_dynamic(await self.resources.dynamic_configuration.get(""))

    def _on_topic_lost(self, topic: Topic) -> None:
        self.topics.on_topic_lost(topic)

    def _on_dynamic(self, changed: DynamicConfiguration | None) -> None:
        """Use the settings that were changed for all brokers, as far as they may change."""
        try:
            config = self._file_config.with_texts(changed.texts if changed else {})
        except ConfigurationError as error:
            logger.warning("dynamic configuration ignored", extra={"error": str(error)})
            return
        if config != self.config:
            self.config = config
            self._set_limits(config)
            self.hooks.filters.use_settings(
                names=config.entryFilterNames, directory=config.entryFiltersDirectory
            )
            self.topics.apply_settings(registry_settings(config, self._ledger_options))
            self.connections.settings = connection_settings(config)
            if self.connections.revoking is not None:
                self.connections.revoking.check()
            self._resize_cache(config)
            self.maintenance.replace_chores(self._chores(config))

    def _set_limits(self, config: BrokerConfig) -> None:
        self.limits.publish.set_limits(
            config.brokerPublisherThrottlingMaxMessageRate,
            config.brokerPublisherThrottlingMaxByteRate,
        )
        self.limits.dispatch.set_limits(
            config.dispatchThrottlingRateInMsg, config.dispatchThrottlingRateInByte
        )

    def _resize_cache(self, config: BrokerConfig) -> None:
        self.managed_ledgers.cache_manager.resize(
            budget_bytes=config.managedLedgerCacheSizeMB * MEBIBYTE,
            watermark=config.managedLedgerCacheEvictionWatermark,
            max_age_seconds=config.managedLedgerCacheEvictionTimeThresholdMillis / 1000,
        )

    async def check_health(self) -> None:
        """Write a value to the metadata store and read it back.

        Raises:
            MetadataError: The store failed.
            ServiceMetadataError: The store returned another value.
        """
        value = str(self.clock.wall_time_millis()).encode()
        addresses = self.addresses.default
        url = addresses.broker_url or addresses.broker_url_tls or ""
        path = f"{HEALTH_PATH}/{url.partition('://')[2] or 'not-listening'}"
        await self.metadata.put(path, value)
        stored = await self.metadata.get(path)
        if stored is None:
            raise ServiceMetadataError(
                f"the metadata store lost the key {path}, which was just written"
            )

    async def check_ready(self) -> None:
        """Return if topics can be looked up and written; nothing is changed.

        Raises:
            ServiceNotReadyError: The session with the metadata store is in doubt, or the broker is
                handing its bundles over.
            StoreUnavailableError: No ledger could be created now.
        """
        if self.membership is not None and self.membership.is_leaving:
            raise ServiceNotReadyError("the broker is leaving its cluster")
        self.namespaces.check_session()
        await self.ledger_store.check_takes(self._ledger_options)

    async def close(self) -> None:
        """Unload every topic with everything written, give up ownership, stop the timers."""
        timeout_seconds = self.config.brokerShutdownTimeoutMs / 1000
        self.connections.stop_reading()
        try:
            async with asyncio.timeout(timeout_seconds):
                await self.namespaces.close()
                await self.topics.close()
        except TimeoutError:
            logger.warning("topics did not close in time", extra={"seconds": timeout_seconds})
        self.loop_lag.close()
        await self.connections.close()
        await self.authenticators.close()
        if self.membership is not None:
            await self.membership.close()
        await self._tasks.close()
        await self.other_brokers.close()
        await self.managed_ledgers.close()
        self.hooks.close()
        await self._spill.remove()
        await self.schemas.close()
        await self.resources.close()

    def _chores(self, config: BrokerConfig) -> list[Chore]:
        """All periodic work, with its intervals."""
        return [
            Chore(
                "expire messages",
                config.messageExpiryCheckIntervalInMinutes * 60,
                _for_persistent(_expire_messages),
            ),
            Chore(
                "check backlog quotas",
                config.backlogQuotaCheckIntervalInSeconds,
                _for_persistent(_enforce_backlog_quota),
            ),
            Chore(
                "trim ledgers",
                config.retentionCheckIntervalInSeconds,
                _for_persistent(_trim),
            ),
            Chore(
                "delete expired subscriptions",
                config.subscriptionExpiryCheckIntervalInMinutes * 60,
                _for_persistent(_delete_expired_subscriptions),
            ),
            Chore(
                "snapshot deduplication",
                config.brokerDeduplicationSnapshotFrequencyInSeconds,
                _for_persistent(_maintain_deduplication),
            ),
            Chore(
                "delete inactive topics",
                config.brokerDeleteInactiveTopicsFrequencySeconds,
                self._delete_if_inactive,
            ),
            Chore(
                "compact topics",
                config.brokerServiceCompactionMonitorIntervalInSeconds,
                _for_persistent(_compact_if_due),
            ),
            Chore("measure rates", config.statsUpdateFrequencyInSecs, self._roll_rates),
        ]

    async def _roll_rates(self, topic: Topic) -> None:
        topic.roll_rates(self.config.statsUpdateFrequencyInSecs)

    async def _delete_if_inactive(self, topic: Topic) -> None:
        from pulsar_py.server.upkeep.topic_upkeep import is_inactive  # noqa: PLC0415 - at first use

        if not is_inactive(topic):
            return
        logger.info("inactive topic deleted", extra={"topic": str(topic.name)})
        await self.topics.delete(topic.name)
        if self.config.brokerDeleteInactivePartitionedTopicMetadataEnabled:
            await self.topics.partitioned.forget_if_empty(topic.name.base)


def _for_persistent(
    run: Callable[[PersistentTopic], Awaitable[None]],
) -> Callable[[Topic], Awaitable[None]]:
    """A chore's function that does nothing for non-persistent topics."""

    async def run_if_persistent(topic: Topic) -> None:
        from pulsar_py.server.topics.persistent import (  # noqa: PLC0415 - at first use
            PersistentTopic,
        )

        if isinstance(topic, PersistentTopic):
            await run(topic)

    return run_if_persistent


# A broker without topics does not import what looks after them.


async def _expire_messages(topic: PersistentTopic) -> None:
    from pulsar_py.server.upkeep.topic_upkeep import expire_messages  # noqa: PLC0415 - at first use

    await expire_messages(topic)


async def _enforce_backlog_quota(topic: PersistentTopic) -> None:
    from pulsar_py.server.upkeep.topic_upkeep import enforce_backlog_quota  # noqa: PLC0415 - at first use

    await enforce_backlog_quota(topic)


async def _delete_expired_subscriptions(topic: PersistentTopic) -> None:
    from pulsar_py.server.upkeep.topic_upkeep import delete_expired_subscriptions  # noqa: PLC0415 - at first use

    await delete_expired_subscriptions(topic)


async def _compact_if_due(topic: PersistentTopic) -> None:
    from pulsar_py.server.upkeep.topic_upkeep import compact_if_due  # noqa: PLC0415 - at first use

    await compact_if_due(topic)


async def _trim(topic: PersistentTopic) -> None:
    await topic.save_index()
    await topic.ledger.roll_if_due()
    await topic.ledger.trim()


async def _maintain_deduplication(topic: PersistentTopic) -> None:
    if topic.deduplication is not None:
        topic.deduplication.maintain(topic.settings)


def broker_hooks(config: BrokerConfig, clock: Clock) -> BrokerHooks:
    """The users' classes that a broker calls.

    Raises:
        ConfigurationError: A name is not that of such a class.
    """
    errors = HookErrors(clock)
    return BrokerHooks(
        errors,
        InstalledFilters(
            errors, names=config.entryFilterNames, directory=config.entryFiltersDirectory
        ),
        Interceptors(errors, config.brokerInterceptors),
    )
