"""Handlers of LOOKUP, partition metadata, topic lists and watches of them.

All of them count against one limit of requests under way in the whole broker.

Source: ServerCnx.handleLookup, handlePartitionMetadataRequest, TopicListService in Pulsar's broker.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Final

from pulsar_py.common.errors import (
    AuthorizationError,
    InvalidTopicNameError,
    NotAllowedError,
    ServiceError,
    ServiceMetadataError,
    TooManyRequestsError,
)
from pulsar_py.common.names import NamespaceName, TopicName
from pulsar_py.proto.PulsarApi_pb2 import (
    CommandGetTopicsOfNamespace,
    CommandLookupTopic,
    CommandPartitionedTopicMetadata,
    CommandWatchTopicList,
    CommandWatchTopicListClose,
)
from pulsar_py.server.handlers.authorizing import authorize, rights_version
from pulsar_py.server.handlers.topic_list_watcher import TopicListWatcher
from pulsar_py.server.handlers.topic_patterns import TopicPattern, topics_hash
from pulsar_py.server.limits.topic_list_budget import list_bytes
from pulsar_py.server.namespaces.lookup import LookupType
from pulsar_py.server.security.actions import Action
from pulsar_py.server.security.authorization import AccessTarget
from pulsar_py.server.topics.registry import TopicListMode
from pulsar_py.wire import commands

if TYPE_CHECKING:
    from pulsar_py.server.handlers.command_connection import CommandConnection

SENT_BYTES: Final = 64 * 1024
"""A list counts as sent when its client has no more than so much left to take."""

SENT_PAUSE_SECONDS: Final = 0.05

_MODES = {
    CommandGetTopicsOfNamespace.PERSISTENT: TopicListMode.PERSISTENT,
    CommandGetTopicsOfNamespace.NON_PERSISTENT: TopicListMode.NON_PERSISTENT,
    CommandGetTopicsOfNamespace.ALL: TopicListMode.ALL,
}


def _is_full(cnx: CommandConnection) -> bool:
    connections = cnx.connections
    return connections.pending_lookups_count >= connections.settings.max_pending_lookups


def _too_many() -> ServiceError:
    return TooManyRequestsError("too many lookups are under way in this broker")


def _spawn_counted(
    cnx: CommandConnection, work: Coroutine[object, object, None], name: str
) -> None:
    cnx.connections.pending_lookups_count += 1
    cnx.spawn(_counted(cnx, work), name)


async def _counted(cnx: CommandConnection, work: Coroutine[object, object, None]) -> None:
    try:
        await work
    finally:
        cnx.connections.pending_lookups_count -= 1


# --- LOOKUP ------------------------------------------------------------------------------------


def handle_lookup(cnx: CommandConnection, command: CommandLookupTopic) -> None:
    """Answer LOOKUP with LOOKUP_RESPONSE, also when it fails; it may be held for a while."""
    if _is_full(cnx):
        _lookup_failed(cnx, command.request_id, _too_many())
        return
    connections = cnx.connections
    connections.pending_lookups_count += 1

    def on_done(task: object) -> None:
        del task
        connections.pending_lookups_count -= 1

    # One that is cancelled before it began runs no code of its own.
    cnx.spawn_until_lost(_lookup(cnx, command), "lookup").add_done_callback(on_done)


async def _lookup(cnx: CommandConnection, command: CommandLookupTopic) -> None:
    try:
        name = TopicName.parse(command.topic)
        await authorize(
            cnx, Action.LOOKUP, AccessTarget.of_topic(name), "Client is not authorized to Lookup"
        )
        result = await cnx.connections.namespaces.lookup(
            name,
            authoritative=command.authoritative,
            listener_name=command.advertised_listener_name or None,
        )
    except Exception as error:  # noqa: BLE001 - a task's outermost edge; it becomes the answer
        _lookup_failed(cnx, command.request_id, cnx.explain(error))
        return
    cnx.send(
        commands.lookup_response(
            command.request_id,
            broker_service_url=result.addresses.broker_url,
            broker_service_url_tls=result.addresses.broker_url_tls,
            is_redirect=result.type is LookupType.REDIRECT,
            is_authoritative=result.is_authoritative,
            is_proxy_through_service_url=result.proxy_through_service_url,
        )
    )


def _lookup_failed(cnx: CommandConnection, request_id: int, error: ServiceError) -> None:
    cnx.send(commands.lookup_failed(request_id, error.code, str(error)))


# --- PARTITIONED_METADATA ----------------------------------------------------------------------


def handle_partitioned_metadata(
    cnx: CommandConnection, command: CommandPartitionedTopicMetadata
) -> None:
    """Answer PARTITIONED_METADATA with its response, also when it fails."""
    if _is_full(cnx):
        _partitions_failed(cnx, command.request_id, _too_many())
        return
    _spawn_counted(cnx, _partitioned_metadata(cnx, command), "partitioned metadata")


async def _partitioned_metadata(
    cnx: CommandConnection, command: CommandPartitionedTopicMetadata
) -> None:
    try:
        name = TopicName.parse(command.topic)
        refusal = "Client is not authorized to Get Partition Metadata"
        try:
            await authorize(cnx, Action.LOOKUP, AccessTarget.of_topic(name), refusal)
        except AuthorizationError:
            await cnx.connections.namespaces.check_tenant(name)
            raise
        partitions_count = await cnx.connections.topics.partitioned.count_or_create(
            name, auto_create=command.metadata_auto_creation_enabled
        )
    except Exception as error:  # noqa: BLE001 - a task's outermost edge; it becomes the answer
        _partitions_failed(cnx, command.request_id, cnx.explain(error))
        return
    cnx.send(commands.partitioned_metadata_response(command.request_id, partitions_count))


def _partitions_failed(cnx: CommandConnection, request_id: int, error: ServiceError) -> None:
    cnx.send(commands.partitioned_metadata_failed(request_id, error.code, str(error)))


# --- GET_TOPICS_OF_NAMESPACE -------------------------------------------------------------------


def handle_get_topics_of_namespace(
    cnx: CommandConnection, command: CommandGetTopicsOfNamespace
) -> None:
    """List the topics of a namespace, filtered by a pattern if it is short enough."""
    if _is_full(cnx):
        cnx.send_error(command.request_id, _too_many())
        return
    _spawn_counted(cnx, _get_topics(cnx, command), "topics of namespace")


async def _get_topics(cnx: CommandConnection, command: CommandGetTopicsOfNamespace) -> None:
    budget, held_bytes = cnx.connections.topic_lists, 0
    try:
        namespace = _parse_namespace(command.namespace)
        refusal = "Client is not authorized to GetTopicsOfNamespace"
        await authorize(cnx, Action.GET_TOPICS, AccessTarget.of_namespace(namespace), refusal)
        pattern = _usable_pattern(cnx, command.topics_pattern)
        held_bytes = await budget.acquire(command.namespace)
        topics = await cnx.connections.topics.list_topics(namespace, _MODES[command.mode])
        held_bytes = budget.correct(command.namespace, held_bytes, list_bytes(topics))
        if pattern is not None:
            topics = await pattern.filter_many(topics)
        text_hash = topics_hash(topics)
        is_changed = text_hash != command.topics_hash
        cnx.send(
            commands.get_topics_of_namespace_response(
                command.request_id,
                topics if is_changed else [],
                is_filtered=pattern is not None,
                topics_hash=text_hash,
                is_changed=is_changed,
            )
        )
        await _sent(cnx)
    except Exception as error:  # noqa: BLE001 - a task's outermost edge; it becomes the answer
        cnx.send_error(command.request_id, error)
    finally:
        budget.give_back(held_bytes)


async def _sent(cnx: CommandConnection) -> None:
    """Return when the client has taken nearly all that it was sent."""
    await asyncio.sleep(0)  # what was queued in this turn is on its way
    while cnx.unsent_bytes > SENT_BYTES:
        await cnx.connections.clock.sleep(SENT_PAUSE_SECONDS)


def _usable_pattern(cnx: CommandConnection, text: str) -> TopicPattern | None:
    """The pattern, if there is one and the broker evaluates it.

    Raises:
        ServiceMetadataError: It does not compile.
    """
    settings = cnx.connections.settings
    is_usable = text and len(text) <= settings.subscription_pattern_max_length
    if not is_usable or not settings.is_pattern_evaluation_enabled:
        return None
    try:
        return TopicPattern(text)
    except InvalidTopicNameError as error:
        raise ServiceMetadataError(str(error)) from None


def _parse_namespace(text: str) -> NamespaceName:
    """Read a namespace's name; an invalid one gets an error (Pulsar closes the connection)."""
    return NamespaceName.parse(text)


# --- WATCH_TOPIC_LIST --------------------------------------------------------------------------


def handle_watch_topic_list(cnx: CommandConnection, command: CommandWatchTopicList) -> None:
    """Answer with the list, and send every change from then on."""
    settings = cnx.connections.settings
    if _is_full(cnx):
        cnx.send_error(command.request_id, _too_many())
        return
    try:
        if not settings.is_topic_list_watcher_enabled:
            raise NotAllowedError("topic list watchers are disabled")
        if len(command.topics_pattern) > settings.subscription_pattern_max_length:
            text = f"pattern longer than {settings.subscription_pattern_max_length}"
            raise NotAllowedError(text)
        namespace = _parse_namespace(command.namespace)
        watcher = TopicListWatcher(
            cnx,
            command.watcher_id,
            namespace,
            TopicPattern(command.topics_pattern),
        )
    except ServiceError as error:
        cnx.send_error(command.request_id, error)
        return
    before = cnx.watchers.pop(command.watcher_id, None)
    if before is not None:
        before.close()
    cnx.watchers[command.watcher_id] = watcher
    _spawn_counted(cnx, _start_watcher(cnx, command, namespace, watcher), "watch topics")


async def _start_watcher(
    cnx: CommandConnection,
    command: CommandWatchTopicList,
    namespace: NamespaceName,
    watcher: TopicListWatcher,
) -> None:
    budget, held_bytes = cnx.connections.topic_lists, 0
    try:
        refusal = "Client is not authorized to watchTopicList"
        target = AccessTarget.of_namespace(namespace)
        rights = rights_version(cnx)
        await authorize(cnx, Action.GET_TOPICS, target, refusal)
        held_bytes = await budget.acquire(command.namespace)
        await watcher.start(cnx.connections.topics)
        while rights != rights_version(cnx):
            rights = rights_version(cnx)
            await authorize(cnx, Action.GET_TOPICS, target, refusal)
        topics = watcher.topics
        held_bytes = budget.correct(command.namespace, held_bytes, list_bytes(topics))
        if cnx.watchers.get(command.watcher_id) is not watcher:
            watcher.close()  # closed, or replaced by a newer one, meanwhile
            return
        text_hash = topics_hash(topics)
        shown = [] if text_hash == command.topics_hash else topics
        cnx.send(
            commands.watch_topic_list_success(
                command.request_id, command.watcher_id, shown, text_hash
            )
        )
        await _sent(cnx)
    except Exception as error:  # noqa: BLE001 - a task's outermost edge; it becomes the answer
        watcher.close()
        if cnx.watchers.get(command.watcher_id) is watcher:
            del cnx.watchers[command.watcher_id]
        cnx.send_error(command.request_id, error)
    finally:
        budget.give_back(held_bytes)


def handle_watch_topic_list_close(
    cnx: CommandConnection, command: CommandWatchTopicListClose
) -> None:
    """End a watch; unknown ids succeed."""
    watcher = cnx.watchers.pop(command.watcher_id, None)
    if watcher is not None:
        watcher.close()
    cnx.send(commands.success(command.request_id))
