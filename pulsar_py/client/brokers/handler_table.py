"""Passes a connection's commands to producers, consumers and topic watchers, by their ids.

SEND_RECEIPT and MESSAGE don't come here: ClientCnx reads `producers` and `consumers` itself. A
command for an unknown id is dropped: its producer or consumer was closed a moment ago.

Source: ClientCnx in Pulsar's client (`handleCloseProducer` and its like).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from pulsar_py.client.brokers.handlers import (
    BrokerConnection,
    ConsumerHandler,
    ProducerHandler,
    TopicWatchHandler,
)
from pulsar_py.proto.PulsarApi_pb2 import BaseCommand, CommandTopicMigrated

__all__ = ["HandlerTable", "Touched"]

Touched = dict[ProducerHandler | ConsumerHandler, None]
"""Handlers that got commands of one piece of received data, in order."""


class HandlerTable:
    """The producers, consumers and topic watchers of one connection, by their ids.

    Owned by a ClientCnx, and lives as long.
    """

    __slots__ = ("consumers", "producers", "watchers")

    def __init__(self) -> None:
        self.producers: dict[int, ProducerHandler] = {}
        self.consumers: dict[int, ConsumerHandler] = {}
        self.watchers: dict[int, TopicWatchHandler] = {}

    @property
    def is_empty(self) -> bool:
        """Whether it has no handlers."""
        return not (self.producers or self.consumers or self.watchers)

    def on_news(self, cnx: BrokerConnection, command: BaseCommand, touched: Touched) -> None:
        """Hand a command to the handler that it names; other types of commands are ignored."""
        if command.type == BaseCommand.SEND_ERROR:
            failed = command.send_error
            if (producer := self.producers.get(failed.producer_id)) is not None:
                touched[producer] = None
                producer.on_send_error(failed.sequence_id, failed.error, failed.message)
        elif (hand_on := self._NEWS.get(command.type)) is not None:
            hand_on(self, cnx, command)

    def _close_producer(self, cnx: BrokerConnection, command: BaseCommand) -> None:
        close = command.close_producer
        if (producer := self.producers.pop(close.producer_id, None)) is not None:
            producer.on_close_producer(
                cnx,
                close.assignedBrokerServiceUrl or None,
                close.assignedBrokerServiceUrlTls or None,
            )

    def _close_consumer(self, cnx: BrokerConnection, command: BaseCommand) -> None:
        close = command.close_consumer
        if (consumer := self.consumers.pop(close.consumer_id, None)) is not None:
            consumer.on_close_consumer(
                cnx,
                close.assignedBrokerServiceUrl or None,
                close.assignedBrokerServiceUrlTls or None,
            )

    def _change_active_consumer(self, _cnx: BrokerConnection, command: BaseCommand) -> None:
        change = command.active_consumer_change
        if (consumer := self.consumers.get(change.consumer_id)) is not None:
            consumer.on_active_consumer_change(is_active=change.is_active)

    def _reach_end_of_topic(self, _cnx: BrokerConnection, command: BaseCommand) -> None:
        consumer_id = command.reachedEndOfTopic.consumer_id
        if (consumer := self.consumers.get(consumer_id)) is not None:
            consumer.on_reached_end_of_topic()

    def _update_topic_list(self, _cnx: BrokerConnection, command: BaseCommand) -> None:
        update = command.watchTopicUpdate
        if (watcher := self.watchers.get(update.watcher_id)) is not None:
            watcher.on_topic_list_update(
                tuple(update.new_topics), tuple(update.deleted_topics), update.topics_hash
            )

    def _migrate(self, cnx: BrokerConnection, command: BaseCommand) -> None:
        migrated = command.topicMigrated
        handler: ProducerHandler | ConsumerHandler | None
        if migrated.resource_type == CommandTopicMigrated.Producer:
            handler = self.producers.get(migrated.resource_id)
        else:
            handler = self.consumers.get(migrated.resource_id)
        if handler is not None:
            handler.on_topic_migrated(
                cnx, migrated.brokerServiceUrl or None, migrated.brokerServiceUrlTls or None
            )

    def on_connection_closed(self, cnx: BrokerConnection) -> None:
        """Call `on_connection_closed` of all handlers, and forget them."""
        handlers: list[ProducerHandler | ConsumerHandler | TopicWatchHandler] = []
        for each in (self.producers, self.consumers, self.watchers):
            handlers += each.values()
            each.clear()
        for handler in handlers:
            handler.on_connection_closed(cnx)

    _NEWS: ClassVar[dict[int, Callable[[HandlerTable, BrokerConnection, BaseCommand], None]]] = {
        BaseCommand.CLOSE_PRODUCER: _close_producer,
        BaseCommand.CLOSE_CONSUMER: _close_consumer,
        BaseCommand.ACTIVE_CONSUMER_CHANGE: _change_active_consumer,
        BaseCommand.REACHED_END_OF_TOPIC: _reach_end_of_topic,
        BaseCommand.WATCH_TOPIC_UPDATE: _update_topic_list,
        BaseCommand.TOPIC_MIGRATED: _migrate,
    }
