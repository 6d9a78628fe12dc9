"""`TopicLimits`: the rates of one topic and its subscriptions, beside those that topics share.

    publish     topic, resource group, broker
    dispatch    subscription, topic, resource group, broker
    subscribe   each consumer of the topic

A limiter is made when a setting first asks for it; a topic without rates has none.

Source: AbstractTopic, DispatchRateLimiter, SubscribeRateLimiter in Pulsar's broker.
"""

from __future__ import annotations

from pulsar_py.common.loops.clock import Clock
from pulsar_py.common.loops.rate_limiter import RateLimiter
from pulsar_py.common.policies import DispatchRate
from pulsar_py.server.dispatch.dispatch_throttle import DispatchThrottle
from pulsar_py.server.dispatch.subscribe_request import SubscribeRequest
from pulsar_py.server.limits.broker_limits import BrokerLimits
from pulsar_py.server.limits.subscribe_limit import SubscribeLimit
from pulsar_py.server.policies.topic_settings import TopicSettings
from pulsar_py.server.publishing.producers import host_of

_TOPIC = ""  # the key of the topic's own dispatch limiter: no subscription has that name


class TopicLimits:
    """The limits of one topic, which owns it."""

    def __init__(self, clock: Clock, shared: BrokerLimits | None) -> None:
        self._clock = clock
        self._shared = shared
        self._publish: RateLimiter | None = None
        self._dispatch: dict[str, RateLimiter] = {}
        self._relative: dict[str, DispatchRate] = {}  # those on top of the rate of publishing
        self._published_rates = (0.0, 0.0)
        self._subscribe: SubscribeLimit | None = None

    def publish_limiters(self, settings: TopicSettings) -> list[RateLimiter]:
        """The limiters that an entry has to pass before it is appended; empty without limits."""
        rate = settings.publish_rate
        if self._publish is None and rate is not None and rate.is_limited:
            self._publish = RateLimiter(self._clock)
        if self._publish is not None:
            messages, size = (
                (0, 0) if rate is None else (rate.messages_per_second, rate.bytes_per_second)
            )
            self._publish.set_limits(messages, size)
        found = [self._publish] if self._publish is not None and self._publish.is_limited else []
        if self._shared is not None:
            if settings.resource_group:
                found.append(self._shared.group(settings.resource_group).publish)
            if settings.is_publishing_limited_by_broker:
                found.append(self._shared.publish)
        return found

    def dispatch_throttle(
        self, settings: TopicSettings, subscription: str
    ) -> DispatchThrottle | None:
        """The limits of a subscription's dispatcher; None without limits."""
        dispatch = settings.dispatch
        own = dispatch.rates_of_subscriptions.get(subscription, dispatch.subscription_rate)
        found = [
            limiter
            for name, rate in ((subscription, own), (_TOPIC, dispatch.topic_rate))
            if (limiter := self._dispatch_limiter(name, rate)) is not None
        ]
        if self._shared is not None:
            if settings.resource_group:
                found.append(self._shared.group(settings.resource_group).dispatch)
            if dispatch.is_limited_by_broker:
                found.append(self._shared.dispatch)
        if not found:
            return None
        return DispatchThrottle(
            found,
            counts_entries=dispatch.rates_count_entries,
            charges_filtered=dispatch.rates_count_filtered,
        )

    def _dispatch_limiter(self, name: str, rate: DispatchRate | None) -> RateLimiter | None:
        self._relative.pop(name, None)
        if rate is None or not rate.is_limited:
            limiter = self._dispatch.pop(name, None)
            if limiter is not None:
                limiter.set_limits(0, 0)  # whoever waits for it goes on
            return None
        limiter = self._dispatch.get(name)
        if limiter is None:
            scope = f"subscription {name}" if name else "topic"
            limiter = self._dispatch[name] = RateLimiter(self._clock, scope)
        if rate.is_relative_to_publish_rate:
            self._relative[name] = rate
        self._set(limiter, rate)
        return limiter

    def _set(self, limiter: RateLimiter, rate: DispatchRate) -> None:
        period = max(rate.period_seconds, 1)
        messages, size = rate.messages_count / period, rate.bytes_count / period
        if rate.is_relative_to_publish_rate:
            published_messages, published_bytes = self._published_rates
            messages = messages + published_messages if messages > 0 else 0
            size = size + published_bytes if size > 0 else 0
        limiter.set_limits(messages, size)

    @property
    def follows_publishing(self) -> bool:
        """Whether a limit is relative to the rate of publishing."""
        return bool(self._relative)

    def on_published_rates(self, messages: float, size_bytes: float) -> None:
        """Let limits that are relative to the rate of publishing follow it."""
        self._published_rates = (messages, size_bytes)
        for name, rate in self._relative.items():
            self._set(self._dispatch[name], rate)

    def forget_subscription(self, name: str) -> None:
        """Drop the limiter of a subscription that ended."""
        self._dispatch.pop(name, None)
        self._relative.pop(name, None)

    def check_subscribe(self, settings: TopicSettings, request: SubscribeRequest) -> None:
        """Count one SUBSCRIBE.

        Raises:
            NotAllowedError: The consumer subscribes too often.
        """
        rate = settings.subscribe_rate
        is_limited = rate is not None and rate.subscribes_per_consumer > 0
        if not is_limited and self._subscribe is None:
            return
        self._subscribe = self._subscribe or SubscribeLimit()
        host = host_of(request.connection.remote_address)
        identity = (host, request.consumer_name, request.consumer_id)
        self._subscribe.check(rate, identity, self._clock.monotonic_seconds())
