"""A consumer of all topics of a namespace that match a regular expression (edge).

A `TopicList` holds the topics that match. The broker's topic watcher keeps it fresh where there is
one (for persistent topics); otherwise, and while the watcher is not connected, the namespace is
asked every `pattern_auto_discovery_period` seconds, with the hash of the known list. One task opens
and closes parts as the list changes: a topic that can't be opened is tried again at the next change
or poll.

Topics that are created later are read from their beginning, because all their messages are newer
than the subscription; Apache's clients begin there as configured, and may miss what was sent before
they noticed the topic.

Source: PatternMultiTopicsConsumerImpl in Pulsar's Java client.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace

from pulsar_py.client.brokers.client_context import ClientContext
from pulsar_py.client.consuming.consumer_config import ConsumerConfig
from pulsar_py.client.consuming.dead_letter import ConsumerDeadLetterPolicy
from pulsar_py.client.many_topics.multi_topics_consumer import MultiTopicsConsumer
from pulsar_py.client.many_topics.topic_list_watcher import FATAL_ERRORS, TopicListWatcher
from pulsar_py.client.many_topics.topic_lists import (
    TopicList,
    TopicPattern,
    TopicsChange,
    topics_change,
)
from pulsar_py.client.receiving.receiver import Receiver
from pulsar_py.client.shared.enums import RegexSubscriptionMode
from pulsar_py.client.shared.type_variables import T_co
from pulsar_py.common.errors import PulsarError
from pulsar_py.common.loops.concurrently import concurrently
from pulsar_py.common.names import TopicName

__all__ = ["PatternConsumer"]

logger = logging.getLogger(__name__)


class PatternConsumer(MultiTopicsConsumer[T_co]):
    """Receives the messages of all topics that match a pattern, also of those created later."""

    def __init__(
        self,
        context: ClientContext,
        pattern: TopicPattern,
        subscription_name: str,
        config: ConsumerConfig,
        *,
        policy: ConsumerDeadLetterPolicy | None = None,
    ) -> None:
        """Nothing happens before `start`.

        Raises:
            InvalidConfigurationError: `receiver_queue_size` is 0.
        """
        self._pattern = pattern
        # Subscribing to a topic that was deleted meanwhile must not create it again.
        config = replace(config, force_topic_creation=False)
        super().__init__(context, (), subscription_name, config, policy=policy)
        self._list = TopicList(pattern)
        # The broker's hash of the list that it last answered with; None: not known.
        self._asked_hash: str | None = None
        self._watcher: TopicListWatcher | None = None
        # Topics whose parts ended for good; opened again if they are still listed.
        self._failed: set[str] = set()
        # Set when parts may have to be opened or closed.
        self._news = asyncio.Event()

    def topic(self) -> str:
        """The pattern."""
        return self._pattern.text

    async def _start_parts(self) -> None:
        await self._ask_for_topics()
        await self._parts.add(sorted(self._list.topics))

    def _spawn_tasks(self) -> None:
        super()._spawn_tasks()
        self._tasks.spawn(self._follow_list(), "follow list")
        self._tasks.spawn(self._watch(), "watch topics")

    async def _partitions_count(self, topic: str) -> int:
        return await self._context.partitions_count(topic, may_create=False)

    def _is_topic_gone(self, topic: str) -> bool:
        return self._pattern.matches(TopicName.parse(topic))

    # --- keeping the list up to date -----------------------------------------------------------

    async def _ask_for_topics(self) -> None:
        answer = await self._context.lookup.topics_of_namespace(
            str(self._pattern.namespace_name),
            self._pattern.mode,
            pattern=self._pattern.broker_text,
            topics_hash=self._asked_hash,
        )
        self._asked_hash = answer.topics_hash or None
        if answer.is_changed:
            self.on_topics_listed(answer.topics)

    async def _watch(self) -> None:
        """Keep a topic watcher connected where brokers have one, and poll while it is not."""
        may_watch = self._pattern.mode is RegexSubscriptionMode.PersistentOnly
        period_seconds = self._config.pattern_auto_discovery_period
        while True:
            if may_watch and self._watcher is None:
                may_watch = await self._open_watcher()
            await self._context.clock.sleep(period_seconds)
            self._news.set()  # what could not be opened is tried again
            if self._watcher is None or not self._watcher.is_connected:
                await self._look()

    async def _open_watcher(self) -> bool:
        """Try to open a watcher; returns False if that can't work later either."""
        watcher = TopicListWatcher(self._context, self._pattern, self)
        try:
            await watcher.open()
        except PulsarError as error:
            self.on_watch_failed(error)
            return not isinstance(error, FATAL_ERRORS)
        self._watcher = watcher
        return True

    async def _look(self) -> None:
        try:
            await self._ask_for_topics()
        except PulsarError as error:
            logger.warning(
                "%s: the broker could not list the topics: %s",
                self._pattern.text,
                error,
                extra={"pattern": self._pattern.text, "error": str(error)},
            )

    def on_topics_listed(self, topics: Sequence[str]) -> None:
        """Take the whole list of matching topics, as the broker sent it."""
        self._on_change(self._list.on_listed(topics))

    def on_topics_updated(self, new: Sequence[str], deleted: Sequence[str]) -> None:
        """Take topics that were added and removed."""
        self._asked_hash = None  # the hash was that of the former list
        self._on_change(self._list.on_updated(new, deleted))

    def _on_change(self, change: TopicsChange) -> None:
        if change:
            logger.info(
                "%s: topics changed: %s",
                self,
                change,
                extra={"pattern": self._pattern.text, "change": f"{change}"},
            )
        self._news.set()

    def on_watch_failed(self, error: Exception) -> None:
        """Go on by polling alone: the watcher has ended."""
        self._watcher = None
        logger.info(
            "%s: topics are not watched: %s",
            self,
            error,
            extra={"pattern": self._pattern.text, "error": str(error)},
        )

    # --- opening and closing parts -------------------------------------------------------------

    async def _follow_list(self) -> None:
        while True:
            await self._news.wait()
            self._news.clear()
            failed, self._failed = self._failed, set()
            await self._parts.remove(failed)
            change = topics_change(frozenset(self._parts.topics), self._list.topics)
            await self._parts.remove(change.removed)
            if change.added:
                await self._add(change.added)
            await self._update_partitions()

    def _on_part_failed(self, receiver: Receiver, error: PulsarError) -> None:
        logger.info(
            "%s: topic %s lost: %s",
            self,
            receiver.topic,
            error,
            extra={"topic": receiver.topic, "error": str(error)},
        )
        self._failed.add(str(TopicName.parse(receiver.topic).base))
        self._news.set()

    async def _add(self, topics: Sequence[str]) -> None:
        """Open parts together, else one by one: a topic that fails must not keep out the others."""
        try:
            await self._parts.add(topics, is_late=True)
        except Exception:  # noqa: BLE001 - tried again below, and logged there
            results = await concurrently(lambda t: self._parts.add([t], is_late=True), topics)
            for topic, error in zip(topics, results, strict=True):
                if isinstance(error, Exception):
                    logger.warning(
                        "%s: topic of a pattern not opened: %s",
                        topic,
                        error,
                        extra={"topic": topic, "error": str(error)},
                    )

    async def close(self) -> None:
        """Leave the subscription on all topics. May be called again."""
        try:
            if self._watcher is not None:
                await self._watcher.close()
        finally:
            await super().close()

    def abandon(self) -> None:
        """As `close`, at once: commands are sent, and no answers awaited."""
        if self._watcher is not None:
            self._watcher.abandon()
        super().abandon()
