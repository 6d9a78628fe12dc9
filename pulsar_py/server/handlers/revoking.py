"""Takes producers, consumers and watches away from clients that have lost their right (edge).

Changed policies of a namespace or tenant, changed settings, or rules of users' own that say so make
every one concerned be checked again; the connection stays:

    producer                            CLOSE_PRODUCER
    producer that waits to be exclusive ERROR, as the last answer to its PRODUCER
    consumer                            CLOSE_CONSUMER
    watch of a namespace's topics       ends; there is no command that would say so

A connection within the process has somebody behind it, such as a client of WebSocket, who is told
by `on_right_lost`.

Many are checked in many turns, in which others are served. Whoever is being admitted meanwhile sees
by `changes_count` that the right has to be asked for again. Apache Pulsar leaves those that wait,
and watches, as they are.

Source: PersistentTopic.onPoliciesUpdate, Producer.checkPermissionsAsync in Pulsar's broker.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Final, Protocol

from pulsar_py.common.errors import AuthorizationError, PulsarError
from pulsar_py.common.loops.tasks import TaskOwner
from pulsar_py.common.loops.work import Turns
from pulsar_py.common.names import NamespaceName
from pulsar_py.metadata.resources import Resources
from pulsar_py.server.handlers.pending import PendingProducer
from pulsar_py.server.handlers.topic_list_watcher import TopicListWatcher
from pulsar_py.server.publishing.producer import Producer
from pulsar_py.server.security.actions import Action
from pulsar_py.server.security.audit import Audit
from pulsar_py.server.security.authorization import (
    AccessTarget,
    Authorization,
    Caller,
    ChangingAuthorization,
)
from pulsar_py.server.subscriptions.consumer import Consumer
from pulsar_py.server.topics.topic import Topic

logger = logging.getLogger(__name__)

_CHECKS_A_TURN: Final = 200
"""Checks of a right in one turn of the loop; each takes some 10 us, mostly."""


class RightsHolder(Protocol):
    """The part of a connection that has rights to lose."""

    role: str | None
    original_principal: str | None
    producers: dict[int, Producer]
    pending_producers: dict[int, PendingProducer]
    consumers: dict[int, Consumer]
    consumer_topics: dict[int, Topic]
    watchers: dict[int, TopicListWatcher]
    on_right_lost: Callable[[], None] | None


class Revoking:
    """Follows changes of rights for the connections of one broker, which owns it."""

    def __init__(
        self,
        authorization: Authorization,
        resources: Resources,
        open_connections: Callable[[], Iterable[RightsHolder]],
        tasks: TaskOwner,
        audit: Audit,
    ) -> None:
        """`audit` says how roles stand in logs."""
        self._authorization = authorization
        self._resources = resources
        self._open_connections = open_connections
        self._tasks = tasks
        self._audit = audit
        self._turns = Turns(_CHECKS_A_TURN)
        self._stop_watching: list[Callable[[], None]] = []
        self.changes_count = 0  # of rights, since the start

    def start(self) -> None:
        """Watch policies; nothing is done while authorization is off."""
        if not self._authorization.is_enabled:
            return
        self._stop_watching = [
            self._resources.namespaces.watch(lambda name, _: self.check(lambda each: each == name)),
            self._resources.tenants.watch(
                lambda name, _: self.check(lambda each: each.tenant == name)
            ),
        ]
        if isinstance(self._authorization, ChangingAuthorization):
            self._authorization.when_rights_change(self.check)

    def close(self) -> None:
        """Stop watching."""
        for stop in self._stop_watching:
            stop()
        self._stop_watching.clear()

    def check(self, is_concerned: Callable[[NamespaceName], bool] = lambda _: True) -> None:
        """Check again all that was admitted in the namespaces that are concerned."""
        if not self._authorization.is_enabled:
            return
        self.changes_count += 1
        self._tasks.spawn(self._check_all(is_concerned), "rights")

    async def _check_all(self, is_concerned: Callable[[NamespaceName], bool]) -> None:
        for cnx in list(self._open_connections()):
            caller = Caller(cnx.role, cnx.original_principal)
            # Those that wait come first: who is admitted meanwhile is in `producers` then.
            for pending in list(cnx.pending_producers.values()):
                waiting = pending.producer
                if waiting is not None and is_concerned(waiting.topic.name.namespace_name):
                    await self._check_waiting(cnx, caller, pending, waiting)
            for producer in list(cnx.producers.values()):
                if is_concerned(producer.topic.name.namespace_name):
                    await self._check_producer(cnx, caller, producer)
            for consumer_id, consumer in list(cnx.consumers.items()):
                topic = cnx.consumer_topics.get(consumer_id)
                if topic is not None and is_concerned(topic.name.namespace_name):
                    target = AccessTarget.of_topic(topic.name, consumer.subscription.name)
                    await self._check_consumer(cnx, caller, consumer, target)
            for watcher_id, watcher in list(cnx.watchers.items()):
                if is_concerned(watcher.namespace):
                    await self._check_watcher(cnx, caller, watcher_id, watcher)

    async def _check_waiting(
        self, cnx: RightsHolder, caller: Caller, pending: PendingProducer, waiting: Producer
    ) -> None:
        target = AccessTarget.of_topic(waiting.topic.name)
        if await self._is_allowed(caller, Action.PRODUCE, target):
            return
        if pending in cnx.pending_producers.values():
            logger.info("producer lost its right", extra=self._fields(caller, target))
            waiting.on_connection_lost()
            assert waiting.request.on_ready is not None, "else it would not wait"
            waiting.request.on_ready(AuthorizationError("Client is not authorized to Produce"))

    async def _check_watcher(
        self, cnx: RightsHolder, caller: Caller, watcher_id: int, watcher: TopicListWatcher
    ) -> None:
        target = AccessTarget.of_namespace(watcher.namespace)
        if await self._is_allowed(caller, Action.GET_TOPICS, target):
            return
        logger.info("watch lost its right", extra=self._fields(caller, target))
        watcher.close()
        if cnx.watchers.get(watcher_id) is watcher:
            del cnx.watchers[watcher_id]

    async def _check_producer(self, cnx: RightsHolder, caller: Caller, producer: Producer) -> None:
        target = AccessTarget.of_topic(producer.topic.name)
        if not await self._is_allowed(caller, Action.PRODUCE, target):
            logger.info("producer lost its right", extra=self._fields(caller, target))
            producer.disconnect()
            _tell(cnx)

    async def _check_consumer(
        self, cnx: RightsHolder, caller: Caller, consumer: Consumer, target: AccessTarget
    ) -> None:
        if not await self._is_allowed(caller, Action.CONSUME, target):
            logger.info("consumer lost its right", extra=self._fields(caller, target))
            consumer.disconnect()
            _tell(cnx)

    async def _is_allowed(self, caller: Caller, action: Action, target: AccessTarget) -> bool:
        await self._turns.take()
        try:
            return await self._authorization.allows(caller, action, target)
        except PulsarError as error:
            # Whoever was admitted stays while the metadata store can't be asked.
            logger.warning("rights not checked", extra={"error": str(error)})
            return True

    def _fields(self, caller: Caller, target: AccessTarget) -> dict[str, object]:
        return {**self._audit.role_fields(caller), "target": str(target)}


def _tell(cnx: RightsHolder) -> None:
    if cnx.on_right_lost is not None:
        cnx.on_right_lost()
