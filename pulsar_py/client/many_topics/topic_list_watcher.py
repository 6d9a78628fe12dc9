"""Watches a namespace for topics that match a pattern, by WATCH_TOPIC_LIST (edge).

The watcher registers on a connection of its own choice, and again whenever that is lost, with the
hash of the list it had: an unchanged list is not sent again. The first answer is the whole list,
updates follow. They are handed on in that order; an update that arrives before the answer waits for
it.

Source: TopicListWatcher in Pulsar's Java client; PIP-179.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Final, Protocol

from pulsar_py.client.brokers.client_cnx import ClientCnx
from pulsar_py.client.brokers.client_context import ClientContext
from pulsar_py.client.brokers.connection_handler import ConnectionHandler
from pulsar_py.client.brokers.handlers import BrokerConnection
from pulsar_py.client.many_topics.topic_lists import TopicPattern
from pulsar_py.common.errors import (
    AuthorizationError,
    InvalidTopicNameError,
    NotAllowedError,
    OperationNotSupportedError,
    PulsarError,
)
from pulsar_py.common.failures import OnFailure
from pulsar_py.wire import client_commands

__all__ = ["TopicListNews", "TopicListWatcher"]

FATAL_ERRORS: Final[tuple[type[Exception], ...]] = (
    OperationNotSupportedError,
    NotAllowedError,
    InvalidTopicNameError,
    AuthorizationError,
)
"""Errors after which watching can't work: the broker has no watchers, or refuses the pattern.
The owner has to poll instead."""


class TopicListNews(Protocol):
    """The receiver of a watcher's lists and updates."""

    def on_topics_listed(self, topics: Sequence[str]) -> None:
        """All topics that match."""

    def on_topics_updated(self, new: Sequence[str], deleted: Sequence[str]) -> None:
        """Topics were added and removed."""

    def on_watch_failed(self, error: Exception) -> None:
        """The watcher has ended with this error: there will be no more calls."""


class TopicListWatcher:
    """One watch; owned by the consumer of a pattern."""

    def __init__(self, context: ClientContext, pattern: TopicPattern, news: TopicListNews) -> None:
        """Nothing happens before `open`."""
        self._context = context
        self._pattern = pattern
        self._news = news
        self._watcher_id = context.new_consumer_id()
        # Any broker can watch. The ConnectionHandler needs a topic to look up; it is not created.
        topic = pattern.namespace_name.topic("topic-list-watcher")
        self._connection: ConnectionHandler = ConnectionHandler(
            context,
            str(topic),
            self,
            description=f"watcher of {pattern.text}",
            fatal_errors=FATAL_ERRORS,
        )
        # The broker's hash of its last list; None before the first one.
        self._topics_hash: str | None = None
        # Updates that arrived before the first answer was handled; None afterwards.
        self._early: list[tuple[Sequence[str], Sequence[str]]] | None = []

    @property
    def is_connected(self) -> bool:
        """Whether the broker sends updates now."""
        return self._connection.is_connected

    async def open(self) -> None:
        """Start watching; returns when the first list has been handed on.

        Raises:
            OperationNotSupportedError: The broker has no topic watchers.
            ServiceError, ClientError: The watch could not be opened within the operation timeout.
        """
        await self._connection.open()

    async def opened(self, cnx: ClientCnx) -> None:
        """Send WATCH_TOPIC_LIST on a new connection, and hand its answer on."""
        if not cnx.feature_flags.supports_topic_watchers:
            raise OperationNotSupportedError(
                f"watcher of {self._pattern.text}: {cnx.remote_address} has no topic watchers"
            )
        self._early = []
        cnx.register_topic_watcher(self._watcher_id, self)
        with OnFailure(partial(cnx.unregister_topic_watcher, self._watcher_id)):
            await self._ask(cnx)

    async def _ask(self, cnx: ClientCnx) -> None:
        request_id = cnx.next_request_id()
        frame = client_commands.watch_topic_list(
            str(self._pattern.namespace_name),
            request_id,
            self._watcher_id,
            self._pattern.broker_text,
            topics_hash=self._topics_hash,
        )
        answer = await cnx.request(
            request_id,
            frame,
            timeout_seconds=self._connection.request_timeout_seconds,
            subject=self._pattern.text,
        )
        success = answer.watchTopicListSuccess
        # The broker leaves the topics out if the hash is the one that was sent.
        if success.topics_hash != self._topics_hash:
            self._topics_hash = success.topics_hash
            self._news.on_topics_listed(list(success.topic))
        early, self._early = self._early or [], None
        for new, deleted in early:
            self._news.on_topics_updated(new, deleted)

    def on_topic_list_update(
        self, new_topics: Sequence[str], deleted_topics: Sequence[str], topics_hash: str
    ) -> None:
        """The broker sent a WATCH_TOPIC_UPDATE."""
        if self._early is not None:
            self._early.append((list(new_topics), list(deleted_topics)))
            return
        self._topics_hash = topics_hash
        self._news.on_topics_updated(list(new_topics), list(deleted_topics))

    def on_connection_closed(self, cnx: BrokerConnection) -> None:
        """The watch ended with the connection: open it again."""
        self._connection.connection_closed(cnx)

    def on_connection_failed(self, error: Exception) -> None:
        """The watcher could not be opened again; it has ended."""
        self._news.on_watch_failed(error)

    async def close(self) -> None:
        """Stop watching; may be called again."""
        cnx = self._connection.cnx
        # Before the request: if the connection is lost meanwhile, it must not be made again.
        self._connection.abandon()
        if cnx is not None and cnx.is_connected:
            cnx.unregister_topic_watcher(self._watcher_id)
            request_id = cnx.next_request_id()
            with suppress(PulsarError):  # the broker forgets it with the connection, too
                await cnx.request(
                    request_id,
                    client_commands.watch_topic_list_close(request_id, self._watcher_id),
                    subject=self._pattern.text,
                )
        await self._connection.close()

    def abandon(self) -> None:
        """Stop watching, without waiting for the broker; may be called after `close`."""
        cnx = self._connection.cnx
        self._connection.abandon()
        if cnx is not None and cnx.is_connected:
            cnx.unregister_topic_watcher(self._watcher_id)
            cnx.send(
                client_commands.watch_topic_list_close(cnx.next_request_id(), self._watcher_id)
            )
