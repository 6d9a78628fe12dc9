"""`Topic`: the base class of persistent and non-persistent topics.

It checks the limits of subscriptions, keeps the topic's state, and collects statistics;
`TopicProducers` has the producers.

    OPEN ──write failed──> FENCED ──all answered──> OPEN
      └──close, delete, lost──> CLOSING ──> CLOSED          (a failed delete goes back to OPEN)

Whether a topic is terminated is a state of its managed ledger.

Source: AbstractTopic in Pulsar's broker.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import ClassVar, Final

from pulsar_py.common.errors import (
    ConsumerBusyError,
    CountLimitError,
    NamingError,
    NotAllowedError,
    ServiceMetadataError,
    SubscriptionNotFoundError,
    TopicBusyError,
    TopicFencedError,
)
from pulsar_py.common.failures import OnFailureAwait
from pulsar_py.common.loops.work import Turns
from pulsar_py.common.names import TopicName
from pulsar_py.common.position import Position
from pulsar_py.server.compaction.topic_compaction import CompactionParts
from pulsar_py.server.delayed.delayed_index import DelayedIndexParts
from pulsar_py.server.dispatch.dispatch_throttle import DispatchThrottle
from pulsar_py.server.dispatch.settings import DispatchSettings
from pulsar_py.server.dispatch.subscribe_request import SubscribeRequest
from pulsar_py.server.dispatch.unacked_limits import BrokerUnackedLimit
from pulsar_py.server.hooks.broker_hooks import BrokerHooks
from pulsar_py.server.hooks.installed_filters import InstalledFilter
from pulsar_py.server.limits.broker_limits import BrokerLimits
from pulsar_py.server.limits.message_checks import check_message, looks_at_messages
from pulsar_py.server.policies.topic_settings import TopicSettings
from pulsar_py.server.publishing.deduplication import CURSOR_NAME as DEDUPLICATION_CURSOR
from pulsar_py.server.publishing.producer import (
    MARKER,
    Append,
    AppendRun,
    Producer,
    ProducerContext,
    PublishContext,
)
from pulsar_py.server.publishing.producer_stats import ProducerStats
from pulsar_py.server.publishing.producers import NO_SEQUENCE_ID, TopicProducers, host_of
from pulsar_py.server.publishing.publish_throttle import PublishThrottle
from pulsar_py.server.publishing.requests import ProducerGrant, ProducerRequest
from pulsar_py.server.publishing.watched_publishing import producer_info, watched_append
from pulsar_py.server.subscriptions.consumer import Consumer
from pulsar_py.server.subscriptions.subscription import Subscription
from pulsar_py.server.subscriptions.subscription_stats import SubscriptionStats
from pulsar_py.server.subscriptions.watched_consumer import CALLS as CONSUMER_CALLS
from pulsar_py.server.subscriptions.watched_consumer import WatchedConsumer
from pulsar_py.server.topics.refused_topics import RefusedTopics
from pulsar_py.server.topics.stats import TopicStats
from pulsar_py.server.topics.topic_limits import TopicLimits
from pulsar_py.server.topics.topic_state import TopicState

PRODUCER_UNITS: Final = 5
"""Units of work that the statistics of a producer are."""


class TopicContext(ProducerContext, frozen=True, kw_only=True):
    """The parts that the topics of one broker share.

    Attributes:
        on_topic_lost: Called when another owner has a topic; closes it without writing anything.
        unacked_limit: Counts the unacknowledged messages of all topics; None for no limit.
        refused: Says which topics are not served; None where there was never another broker.
        limits: The rates that topics share; None for no limit.
        compaction: What compactions of topics share; None: topics are not compacted.
        delayed_index: What delayed indexes on disk share; None: delays are in memory.
        hooks: The users' filters and interceptors; None for none.
    """

    on_topic_lost: Callable[[Topic], None]
    unacked_limit: BrokerUnackedLimit | None = None
    refused: RefusedTopics | None = None
    limits: BrokerLimits | None = None
    compaction: CompactionParts | None = None
    delayed_index: DelayedIndexParts | None = None
    hooks: BrokerHooks | None = None


class Topic(ABC):
    """A loaded topic; made and owned by the `TopicRegistry`.

    It implements `SubscriptionOwner` for its subscriptions.
    """

    subscription_kind: ClassVar[str]

    def __init__(
        self,
        name: TopicName,
        settings: TopicSettings,
        context: TopicContext,
        *,
        topic_epoch: int | None = None,
    ) -> None:
        self.name = name
        self.context = context
        self.state = TopicState.OPEN
        self.created_millis = context.clock.wall_time_millis()
        self.last_published_millis = 0
        self.last_active_seconds = context.clock.monotonic_seconds()
        self._settings = settings
        self._producers = TopicProducers(self, topic_epoch=topic_epoch)
        self._messages_out_gone = 0  # messages that deleted subscriptions have sent
        self._bytes_out_gone = 0
        self._limits = TopicLimits(context.clock, None if name.is_system else context.limits)
        hooks = None if name.is_system else context.hooks
        self._interceptors = None if hooks is None else hooks.interceptors
        self._throttle: PublishThrottle | None = None  # None while publishing has no limit

    # --- properties ------------------------------------------------------------------------

    @property
    def settings(self) -> TopicSettings:
        """The effective settings now."""
        return self._settings

    @property
    def dispatch_settings(self) -> DispatchSettings:
        """The effective settings of its subscriptions now."""
        return self._settings.dispatch

    @property
    def producers(self) -> Mapping[str, Producer]:
        """Connected producers by name; those that wait for exclusive access are not among them."""
        return self._producers.by_name

    @property
    def topic_epoch(self) -> int | None:
        """Number of exclusive producers so far, None before the first."""
        return self._producers.topic_epoch

    @property
    def waiting_producers_count(self) -> int:
        """Producers that wait for exclusive access."""
        return self._producers.waiting_count

    @property
    @abstractmethod
    def subscriptions(self) -> Mapping[str, Subscription]:
        """Subscriptions by name."""

    @property
    def consumers_count(self) -> int:
        """Consumers of all subscriptions."""
        return sum(len(each.consumers) for each in self.subscriptions.values())

    @property
    def is_system(self) -> bool:
        """Whether it is a system topic, which has no limits and needs no encryption."""
        return self.name.is_system

    def same_address_consumers_count(self, address: str) -> int:
        """The number of consumers whose connections come from this host."""
        return sum(
            1
            for subscription in self.subscriptions.values()
            for consumer in subscription.consumers
            if host_of(consumer.connection.remote_address) == address
        )

    # --- producers -------------------------------------------------------------------------

    async def check_producer_allowed(self, request: ProducerRequest) -> None:
        """Check the backlog quota, then encryption, before a producer's schema is checked.

        Raises:
            ProducerBlockedQuotaExceededError: A quota with `producer_request_hold` is exceeded.
            ProducerBlockedQuotaExceededExceptionError: One with `producer_exception` is.
            ServiceMetadataError: The topic requires encryption and the producer does not encrypt.
        """
        await self._check_backlog_quota()
        requires = self._settings.is_encryption_required and not self.is_system
        if requires and not request.is_encrypted:
            raise ServiceMetadataError(f"Encryption is required in {self.name}")

    async def add_producer(self, request: ProducerRequest) -> ProducerGrant:
        """Create the initial subscription if the request has one, then admit the producer.

        Raises:
            ProducerBusyError: The name is taken, an exclusive producer is there, or too many are.
            ProducerFencedError: Exclusive access is refused.
            TopicTerminatedError, TopicFencedError: The topic takes no producers.
            NotAllowedError: The initial subscription may not be created.
        """
        self.check_takes_producers()
        if request.initial_subscription_name:
            await self._create_initial_subscription(request.initial_subscription_name)
        return await self._producers.add(request)

    def remove_producer(self, producer: Producer) -> None:
        """Remove a producer, which calls this when it leaves."""
        self._producers.remove(producer)

    def disconnect_producers(self) -> None:
        """Send CLOSE_PRODUCER to all producers, those that wait for exclusive access included."""
        self._producers.disconnect_all()

    def takes_producers(self) -> bool:
        """Whether the topic is open."""
        return self.state is TopicState.OPEN

    def check_takes_producers(self) -> None:
        """Raise unless the topic takes producers.

        Raises:
            TopicFencedError: It is fenced or closing.
        """
        if self.state is not TopicState.OPEN:
            raise TopicFencedError(f"Topic {self.name} is temporarily unavailable")

    def _check_open(self) -> None:
        if self.state in (TopicState.CLOSING, TopicState.CLOSED):
            raise TopicFencedError(f"Topic {self.name} is closing")

    # --- consumers -------------------------------------------------------------------------

    async def subscribe(self, request: SubscribeRequest) -> Consumer:
        """Add a consumer, with its subscription if that is new and may be created.

        Raises:
            SubscriptionNotFoundError: A durable one is missing and must not be created.
            ConsumerBusyError: The subscription has another type, Exclusive is taken, or there are
                too many consumers.
            NotAllowedError: The type is disabled, there are too many subscriptions, or the
                subscription is durable and the request is not, or the other way round.
            NamingError: The subscription's name is empty or reserved.
            TopicFencedError: The topic is closing.
            ConsumerAssignError: Its hash ranges are taken, or none is left to split.
        """
        self._check_open()
        subscription = self.subscriptions.get(request.subscription_name)
        if subscription is None:
            self._check_allows_creation(is_durable=request.is_durable)
        self._check_subscribe(request)
        is_new = subscription is None
        if subscription is None:
            subscription = await self._create_subscription(request)
            self._check_open()
        elif subscription.is_durable != request.is_durable:
            kind = "Durable" if subscription.is_durable else "NonDurable"
            raise NotAllowedError(f"{kind} subscription with the same name already exists.")
        consumer = self._new_consumer(request, subscription)
        async with OnFailureAwait(partial(self._on_refused, subscription, is_new=is_new)):
            await subscription.add_consumer(consumer)
        if self.state in (TopicState.CLOSING, TopicState.CLOSED):
            consumer.close()
            raise TopicFencedError(f"Topic {self.name} is closing")
        self.last_active_seconds = self.context.clock.monotonic_seconds()
        if isinstance(consumer, WatchedConsumer):
            consumer.on_joined()
        return consumer

    def _new_consumer(self, request: SubscribeRequest, subscription: Subscription) -> Consumer:
        if self._interceptors is None or not self._interceptors.hears(*CONSUMER_CALLS):
            return Consumer(request, subscription)
        return WatchedConsumer(request, subscription, self._interceptors)

    async def _on_refused(self, subscription: Subscription, *, is_new: bool) -> None:
        if is_new:
            await self._on_consumer_refused(subscription)

    def _check_subscribe(self, request: SubscribeRequest) -> None:
        name = request.subscription_name
        if not name:
            raise NamingError("Empty subscription name")
        is_reserved = name == DEDUPLICATION_CURSOR or name.startswith(
            self._settings.replicator_prefix
        )
        if is_reserved:
            raise NamingError(f"Subscription with reserved subscription name attempted: {name}")
        kind = request.subscription_type
        if request.read_compacted:
            if not self.name.is_persistent:
                raise NotAllowedError("readCompacted only valid on persistent topics")
            if not kind.has_single_active_consumer:
                raise NotAllowedError(
                    "readCompacted only allowed on failover or exclusive subscriptions"
                )
        if kind not in self._settings.dispatch.enabled_subscription_types:
            text = f"Topic[{{{self.name}}}] doesn't support {kind.wire_name} sub type!"
            raise NotAllowedError(text)
        if not self.is_system:
            self._limits.check_subscribe(self._settings, request)
        limit = self._settings.dispatch.max_consumers_per_topic
        if 0 < limit <= self.consumers_count and not self.is_system:
            raise ConsumerBusyError("Topic reached max consumers limit")

    def _check_may_create_subscription(self, name: str, *, is_durable: bool) -> None:
        self._check_allows_creation(is_durable=is_durable)
        self._check_subscriptions_limit(name)

    def _check_allows_creation(self, *, is_durable: bool) -> None:
        allows = self._settings.allows_subscription_creation or self.is_system
        if is_durable and not allows and self.name.is_persistent:
            raise SubscriptionNotFoundError("Subscription does not exist")

    def _check_subscriptions_limit(self, name: str) -> None:
        limit = self._settings.max_subscriptions
        is_new = name not in self.subscriptions
        if is_new and not self.is_system and 0 < limit <= len(self.subscriptions):
            raise CountLimitError(
                f"Exceed the maximum number of subscriptions of the topic: {self.name}"
            )

    async def _create_initial_subscription(self, name: str) -> None:
        if name in self.subscriptions:
            return
        if not self._settings.allows_subscription_creation:
            raise NotAllowedError(
                "Could not create the initial subscription due to the auto subscription creation "
                "is not allowed."
            )
        await self.create_subscription(name, starts_at_earliest=True)

    async def _on_consumer_refused(self, subscription: Subscription) -> None:
        """Remove a reader's new subscription again, after its consumer was refused."""
        if not subscription.is_durable and not subscription.consumers:
            await subscription.delete()

    # --- implemented by the kinds of topics ------------------------------------------------

    def append_function(self) -> Append:
        """The function with which producers append entries; replaced when settings change."""
        raise NotImplementedError

    def append_run_function(self, append: Append) -> AppendRun | None:
        """The function that appends a run as `append` does its entries; None if there is none."""
        del append
        return None

    def _guarded(self, append: Append) -> Append:
        """`append` behind interceptors, checks of messages and the limits, as far as there are any.

        What a check refuses waits for no limit, so that its producer is told in order.
        """
        append = self._throttled(append)
        has_delays = self.name.is_persistent
        if not self.is_system and looks_at_messages(self._settings, has_delays=has_delays):
            append = partial(self._append_checked, append)
        if self._interceptors is not None and self._interceptors.hears("on_message_publish"):
            append = watched_append(append, self._interceptors)
        return append

    def _append_checked(self, append: Append, data: bytes, context: PublishContext) -> None:
        """Refuse a message that the settings forbid."""
        if context[5] != MARKER:
            check_message(data, self._settings, has_delays=self.name.is_persistent)
        append(data, context)

    def _throttled(self, append: Append) -> Append:
        limiters = [] if self.is_system else self._limits.publish_limiters(self._settings)
        if self._throttle is None:
            if not limiters:
                return append
            self._throttle = PublishThrottle(append)
        self._throttle.set(append, limiters)
        return self._throttle.append if self._throttle.is_needed else append

    def dispatch_throttle(self, subscription: str) -> DispatchThrottle | None:
        """The limits that a subscription's dispatcher has to keep to now; None without any."""
        if self.is_system:
            return None
        return self._limits.dispatch_throttle(self._settings, subscription)

    def user_filters(self) -> Sequence[InstalledFilter]:
        """The users' entry filters of its subscriptions now."""
        dispatch, hooks = self._settings.dispatch, self.context.hooks
        names = dispatch.entry_filter_names
        if dispatch.entry_filters_of_policy and dispatch.allows_filter_override:
            names = dispatch.entry_filters_of_policy
        if not names or hooks is None or self.is_system:
            return ()
        return hooks.filters.find(names)

    def last_sequence_id(self, producer_name: str) -> int:
        """The highest known sequence id of a producer; -1 if none is known."""
        del producer_name
        return NO_SEQUENCE_ID

    def on_producer_added(self, producer: Producer) -> None:
        """Called when a producer is admitted."""
        self._tell_of_producer("producer_created", producer)

    def _tell_of_producer(self, call: str, producer: Producer) -> None:
        if self._interceptors is not None and self._interceptors.hears(call):
            self._interceptors.tell(call, producer_info(producer))

    def on_producer_removed(self, producer: Producer) -> None:
        """Called when an admitted producer has left."""
        if self._throttle is not None:
            self._throttle.forget(producer)
        self.last_active_seconds = self.context.clock.monotonic_seconds()
        self._tell_of_producer("producer_closed", producer)

    async def _check_backlog_quota(self) -> None:  # noqa: B027 - nothing to do
        """Raise if an exceeded backlog quota refuses producers."""

    async def store_topic_epoch(self, topic_epoch: int) -> None:  # noqa: B027 - nothing to do
        """Store the epoch durably; its producer may publish after that."""

    @abstractmethod
    async def _create_subscription(self, request: SubscribeRequest) -> Subscription:
        """A subscription for a consumer, if it may be created."""

    @abstractmethod
    async def create_subscription(
        self, name: str, *, starts_at_earliest: bool, properties: Mapping[str, str] | None = None
    ) -> Subscription:
        """The durable subscription of that name, created if missing, whatever the policy says."""

    @abstractmethod
    def max_read_position(self) -> Position:
        """The last position that may be dispatched."""

    @abstractmethod
    def forget_subscription(self, subscription: Subscription) -> None:
        """Drop a subscription that ended."""

    @abstractmethod
    async def delete_subscription(self, name: str, *, force: bool = False) -> None:
        """Delete a subscription.

        Raises:
            SubscriptionNotFoundError: There is none.
            SubscriptionBusyError: It has consumers, and `force` is not set.
        """

    @abstractmethod
    async def apply_settings(self, settings: TopicSettings) -> None:
        """Use changed effective settings."""

    def lose(self) -> None:
        """Let the topic be closed soon, without writing anything: another broker owns it."""
        self.context.on_topic_lost(self)

    @abstractmethod
    async def close(self, *, disconnect_clients: bool = True) -> None:
        """Unload: fence, disconnect clients, write cursors and ledger. May be called again."""

    @abstractmethod
    async def delete(self, *, force: bool = False) -> None:
        """Delete for good.

        Raises:
            TopicBusyError: Clients are connected, and `force` is not set.
            TopicFencedError: It is closing already.
        """

    @abstractmethod
    async def terminate(self) -> Position:
        """Terminate the topic; returns the position of its last entry.

        Raises:
            NotAllowedError: The topic is non-persistent.
        """

    @abstractmethod
    def last_message_position(self) -> Position:
        """Position of the last message; `EARLIEST` if there is none.

        Raises:
            UnknownServiceError: The topic is non-persistent.
        """

    def stats(self) -> TopicStats:
        """A snapshot for REST and metrics, in one go."""
        return self._stats(
            tuple(each.stats() for each in self.producers.values()),
            {name: each.stats() for name, each in self.subscriptions.items()},
        )

    async def stats_in_turns(self, turns: Turns, *, explains: bool = True) -> TopicStats:
        """As `stats`; others have turns, so that its parts may be of different moments.

        Without `explains` nobody looks why subscriptions do not move.
        """
        producers: list[ProducerStats] = []
        for producer in list(self.producers.values()):
            await turns.take(PRODUCER_UNITS)
            producers.append(producer.stats())
        subscriptions: dict[str, SubscriptionStats] = {}
        for name, subscription in list(self.subscriptions.items()):
            subscriptions[name] = await subscription.stats_in_turns(turns, explains=explains)
        return self._stats(tuple(producers), subscriptions)

    @abstractmethod
    def _stats(
        self,
        producers: tuple[ProducerStats, ...],
        subscriptions: Mapping[str, SubscriptionStats],
    ) -> TopicStats:
        """The statistics, with those of producers and subscriptions."""

    def roll_rates(self, seconds: float) -> None:
        """Start a new window of rates; the last one was this long."""
        self._producers.roll_rates(seconds)
        if self._limits.follows_publishing:
            stats = [each.stats() for each in self.producers.values()]
            self._limits.on_published_rates(
                sum(each.message_in_rate for each in stats),
                sum(each.bytes_in_rate for each in stats),
            )
        for subscription in self.subscriptions.values():
            subscription.roll_rates(seconds)

    def check_deletable(self) -> None:
        """Check that no client is connected.

        Raises:
            TopicBusyError: A client is connected.
        """
        producers, consumers = len(self.producers), self.consumers_count
        if producers or consumers:
            clients = (
                "1 client" if producers + consumers == 1 else f"{producers + consumers} clients"
            )
            raise TopicBusyError(
                f"Topic has {clients} connected Including {consumers} "
                f"consumers, {producers} producers, and 0 replicators."
            )

    def _common_stats(
        self,
        producers: tuple[ProducerStats, ...],
        subscriptions: Mapping[str, SubscriptionStats],
    ) -> dict[str, object]:
        """The fields of TopicStats that both kinds fill the same way."""
        message_rate = sum(each.message_in_rate for each in producers)
        bytes_rate = sum(each.bytes_in_rate for each in producers)
        out = subscriptions.values()
        return {
            "message_in_rate": message_rate,
            "bytes_in_rate": bytes_rate,
            "message_out_rate": sum(each.message_out_rate for each in out),
            "bytes_out_rate": sum(each.bytes_out_rate for each in out),
            "messages_in_count": self._producers.messages_gone_count
            + sum(each.messages_in_count for each in producers),
            "bytes_in_count": self._producers.bytes_gone_count
            + sum(each.bytes_in_count for each in producers),
            "messages_out_count": self._messages_out_gone
            + sum(each.messages_out_count for each in out),
            "bytes_out_count": self._bytes_out_gone + sum(each.bytes_out_count for each in out),
            "average_message_bytes": bytes_rate / message_rate if message_rate else 0.0,
            "is_chunked": any(each.is_chunked for each in self.producers.values()),
            "topic_epoch": self.topic_epoch,
            "waiting_producers_count": self.waiting_producers_count,
            "created_millis": self.created_millis,
            "last_published_millis": self.last_published_millis,
            "publish_limited_count": 0 if self._throttle is None else self._throttle.limited_count,
            "producers": producers,
            "subscriptions": subscriptions,
        }
