"""Handlers of SUBSCRIBE, FLOW, ACK, REDELIVER, SEEK, UNSUBSCRIBE, CLOSE_CONSUMER and stats.

A consumer id is unknown, then pending while its SUBSCRIBE is served, then in `consumers` until
either side closes it. Permits of a FLOW for a pending one are kept. Other commands for an id that
is not in `consumers` get an error if they have an answer, and are dropped if not.

Source: ServerCnx.handleSubscribe and the handlers after it in Pulsar's broker.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING

from pulsar_py.common.errors import (
    ConsumerNotFoundError,
    LedgerNotFoundError,
    NotAllowedError,
    RemoteProtocolError,
    ServiceError,
    ServiceMetadataError,
    ServiceNotReadyError,
)
from pulsar_py.common.loops.work import (
    MAX_HOLDERS_A_TURN,
    MAX_IDS_A_TURN,
    MAX_UNITS,
    check_units,
    ids_a_turn,
)
from pulsar_py.common.message_id import position_of
from pulsar_py.common.names import TopicName
from pulsar_py.common.position import EARLIEST, LedgerPositions, Position
from pulsar_py.proto.PulsarApi_pb2 import (
    CommandAck,
    CommandCloseConsumer,
    CommandConsumerStats,
    CommandConsumerStatsResponse,
    CommandFlow,
    CommandGetLastMessageId,
    CommandRedeliverUnacknowledgedMessages,
    CommandSeek,
    CommandSubscribe,
    CommandUnsubscribe,
)
from pulsar_py.server.handlers.ack_receipts import AckReceipts
from pulsar_py.server.handlers.authorizing import authorize, rights_version
from pulsar_py.server.handlers.handle_schema import check_schema_of_consumer
from pulsar_py.server.handlers.pending import PendingConsumer
from pulsar_py.server.publishing.requests import SubscribeRequest
from pulsar_py.server.security.actions import Action
from pulsar_py.server.security.authorization import AccessTarget
from pulsar_py.server.subscriptions.consumer import check_ack_set
from pulsar_py.server.subscriptions.persistent_subscription import PersistentSubscription
from pulsar_py.server.topics.persistent import PersistentTopic
from pulsar_py.wire import commands
from pulsar_py.wire.payload import parse_fields, parse_metadata

if TYPE_CHECKING:
    from pulsar_py.server.handlers.command_connection import CommandConnection
    from pulsar_py.server.subscriptions.consumer import Consumer
    from pulsar_py.server.topics.topic import Topic
    from pulsar_py.wire.plain_acks import PlainAck

_UNSIGNED = 1 << 64

_NOT_AUTHORIZED = "Client is not authorized to subscribe"

_MAX_MARKERS_PASSED = 10_000
"""The most markers at a topic's end that are skipped to find its last message."""

_MARKERS_A_TURN = 200
"""Of those, between two turns of others: an entry in the cache is read without a wait."""


def handle_subscribe(cnx: CommandConnection, command: CommandSubscribe) -> None:
    """Begin to create a consumer; a repeated command for a connected one succeeds."""
    consumer_id, request_id = command.consumer_id, command.request_id
    check_units(
        len(command.metadata)
        + len(command.subscription_properties)
        + len(command.keySharedMeta.hashRanges)
    )
    name = TopicName.parse(command.topic)
    limit = cnx.connections.settings.max_consumer_metadata_bytes
    size = sum(len(pair.key) + len(pair.value) for pair in command.metadata)
    if size > limit:
        raise ServiceMetadataError(f"consumer metadata of {size} bytes, allowed are {limit}")
    if consumer_id in cnx.consumers:
        # The client timed out and repeats its request, but the first one has succeeded.
        cnx.send(commands.success(request_id))
        return
    if consumer_id in cnx.pending_consumers:
        raise ServiceNotReadyError("Consumer is already present on the connection")
    pending = PendingConsumer()
    cnx.pending_consumers[consumer_id] = pending
    request = SubscribeRequest.from_command(
        command, cnx, role=cnx.role, is_wanted=lambda: not pending.is_abandoned
    )
    cnx.spawn(_subscribe(cnx, name, request, pending, request_id), f"subscribe {name}")


async def _subscribe(
    cnx: CommandConnection,
    name: TopicName,
    request: SubscribeRequest,
    pending: PendingConsumer,
    request_id: int,
) -> None:
    consumer_id = request.consumer_id
    try:
        rights = rights_version(cnx)
        target = AccessTarget.of_topic(name, request.subscription_name)
        await authorize(cnx, Action.CONSUME, target, _NOT_AUTHORIZED)
        topic = await cnx.connections.topics.get_or_load(
            name, create_if_missing=request.force_topic_creation
        )
        schemas = cnx.connections.schemas
        await check_schema_of_consumer(schemas, topic, request.schema, cnx.role)
        if pending.is_abandoned:
            return
        consumer = await topic.subscribe(request)
        try:
            cnx.connections.namespaces.check_session()
            while rights != rights_version(cnx):
                rights = rights_version(cnx)
                await authorize(cnx, Action.CONSUME, target, _NOT_AUTHORIZED)
        except ServiceError:
            consumer.close()
            raise
    except Exception as error:  # noqa: BLE001 - a task's outermost edge; it becomes the answer
        # An abandoned id is in `pending_consumers` no more, or again for a newer SUBSCRIBE.
        if not pending.is_abandoned:
            del cnx.pending_consumers[consumer_id]
            cnx.send_error(request_id, error)
        return
    if pending.is_abandoned:
        consumer.close()
        return
    del cnx.pending_consumers[consumer_id]
    cnx.consumers[consumer_id] = consumer
    cnx.consumer_topics[consumer_id] = topic
    cnx.send(commands.success(request_id))
    if pending.permits_count:
        consumer.flow(pending.permits_count)


def handle_flow(cnx: CommandConnection, command: CommandFlow) -> None:
    """Give a consumer more permits; there is no answer."""
    consumer = cnx.consumers.get(command.consumer_id)
    if consumer is not None:
        consumer.flow(command.messagePermits)
        return
    pending = cnx.pending_consumers.get(command.consumer_id)
    if pending is not None:
        pending.flow(command.messagePermits)


def handle_ack(cnx: CommandConnection, command: CommandAck) -> Generator[None] | None:
    """Acknowledge; answered only if the command has a request id and the consumer exists.

    The answer follows the write of the cursor that has the acknowledgement.
    """
    # Hot path: acknowledge.
    consumer = cnx.consumers.get(command.consumer_id)
    if consumer is None:
        return None
    if _is_transactional(command):
        _refuse_transactional_ack(cnx, command)
        return None
    ids_count = len(command.message_id)
    if (
        ids_count > 1
        and ids_count * len(consumer.subscription.consumers) > MAX_HOLDERS_A_TURN
        and command.ack_type == CommandAck.Individual
    ):
        return acknowledge_in_parts(cnx, iter((command,)))
    try:
        consumer.acknowledge(command)
    except Exception as error:  # noqa: BLE001 - it becomes the answer
        _answer_ack(cnx, command, cnx.explain(error))
        return None
    if command.HasField("request_id"):
        _answer_once_durable(cnx, consumer, command.request_id)
    return None


def handle_plain_ack(cnx: CommandConnection, ack: PlainAck) -> bool:
    """Serve an ACK as `handle_ack` does; False if it has to be served there."""
    # Hot path: benchmarks/micro_acks.
    consumer = cnx.consumers.get(ack.consumer_id)
    if consumer is None:
        return True
    positions = LedgerPositions(ack.ledger_id, ack.entry_ids)
    holders_count = len(positions) * len(consumer.subscription.consumers)
    if consumer.needs_commands or holders_count > MAX_HOLDERS_A_TURN:
        return False
    try:
        consumer.acknowledge_whole(positions)
    except Exception as error:  # noqa: BLE001 - it becomes the answer
        _answer_failed_ack(cnx, ack.consumer_id, ack.request_id, cnx.explain(error))
        return True
    if ack.request_id is not None:
        _answer_once_durable(cnx, consumer, ack.request_id)
    return True


def acknowledge_in_parts(cnx: CommandConnection, parts: Iterator[CommandAck]) -> Generator[None]:
    """Serve an ACK of many ids, cut into several: one answer at the end, or when one fails.

    A cumulative ACK has exactly one id; others are ignored, as in `handle_ack`.
    """
    part = command = next(parts)
    while True:
        consumer = cnx.consumers.get(command.consumer_id)
        if consumer is None:
            return
        if _is_transactional(command):
            _refuse_transactional_ack(cnx, command)
            return
        try:
            if command.ack_type == CommandAck.Cumulative or not (
                yield from _acknowledge_in_turns(consumer, part)
            ):
                break
            following = next(parts, None)
        except RemoteProtocolError:
            raise
        except Exception as error:  # noqa: BLE001 - it becomes the answer
            _answer_ack(cnx, command, cnx.explain(error))
            return
        if following is None:
            break
        part = following
    if command.HasField("request_id"):
        _answer_once_durable(cnx, consumer, command.request_id)


def _acknowledge_in_turns(consumer: Consumer, command: CommandAck) -> Generator[None, None, bool]:
    """Acknowledge some ids in each turn; returns False if the rest has to be ignored."""
    ids = command.message_id
    size = ids_a_turn(len(consumer.subscription.consumers))
    for start in range(0, len(ids), size):
        yield
        if consumer.is_closed:
            return False
        some = CommandAck(consumer_id=command.consumer_id, ack_type=command.ack_type)
        some.message_id.extend(ids[start : start + size])
        check_units(len(some.message_id) + sum(len(each.ack_set) for each in some.message_id))
        if not consumer.acknowledge(some):
            return False
    return True


def _answer_once_durable(cnx: CommandConnection, consumer: Consumer, request_id: int) -> None:
    receipts = consumer.ack_receipts
    if receipts is None:
        receipts = consumer.ack_receipts = AckReceipts(cnx, consumer.consumer_id)
    consumer.subscription.when_acknowledged_durably(receipts, request_id)


def _answer_ack(cnx: CommandConnection, command: CommandAck, error: ServiceError) -> None:
    request_id = command.request_id if command.HasField("request_id") else None
    _answer_failed_ack(cnx, command.consumer_id, request_id, error)


def _answer_failed_ack(
    cnx: CommandConnection, consumer_id: int, request_id: int | None, error: ServiceError
) -> None:
    if request_id is not None:
        cnx.send(
            commands.ack_response(consumer_id, request_id, code=error.code, message=str(error))
        )


def _is_transactional(command: CommandAck) -> bool:
    return command.HasField("txnid_least_bits") or command.HasField("txnid_most_bits")


def _refuse_transactional_ack(cnx: CommandConnection, command: CommandAck) -> None:
    if command.HasField("request_id"):
        cnx.send(
            commands.ack_response(
                command.consumer_id,
                command.request_id,
                code=NotAllowedError.code,
                message="Transactions are not enabled.",
                txn_id=(command.txnid_most_bits, command.txnid_least_bits),
            )
        )


def handle_redeliver(
    cnx: CommandConnection, command: CommandRedeliverUnacknowledgedMessages
) -> Generator[None] | None:
    """Redeliver unacknowledged entries; there is no answer."""
    consumer = cnx.consumers.get(command.consumer_id)
    if consumer is None:
        return None
    if not command.message_ids and len(consumer.pending_acks) > MAX_UNITS:
        return _redeliver_all(consumer, command)
    check_units(len(command.message_ids))
    consumer.redeliver(command)
    return None


def _redeliver_all(
    consumer: Consumer, command: CommandRedeliverUnacknowledgedMessages
) -> Generator[None]:
    """Redeliver a consumer's pending entries, some in each turn; those sent meanwhile stay."""
    held = [Position(*key) for key in consumer.pending_acks]
    for start in range(0, len(held), MAX_IDS_A_TURN):
        yield
        if consumer.is_closed:
            return
        consumer.redeliver(command, held[start : start + MAX_IDS_A_TURN])


def redeliver_in_parts(
    cnx: CommandConnection, parts: Iterator[CommandRedeliverUnacknowledgedMessages]
) -> Generator[None]:
    """Serve a REDELIVER of many ids, cut into several."""
    for part in parts:
        yield
        consumer = cnx.consumers.get(part.consumer_id)
        if consumer is None:
            return
        check_units(len(part.message_ids))
        consumer.redeliver(part)


def _consumer_of(cnx: CommandConnection, consumer_id: int) -> Consumer:
    consumer = cnx.consumers.get(consumer_id)
    if consumer is None:
        raise ServiceMetadataError("Consumer not found")
    return consumer


def handle_unsubscribe(cnx: CommandConnection, command: CommandUnsubscribe) -> None:
    """Delete the consumer's subscription."""
    consumer = _consumer_of(cnx, command.consumer_id)
    cnx.spawn(_unsubscribe(cnx, command, consumer), f"unsubscribe {command.consumer_id}")


async def _unsubscribe(
    cnx: CommandConnection, command: CommandUnsubscribe, consumer: Consumer
) -> None:
    try:
        await consumer.subscription.unsubscribe(consumer, force=command.force)
    except Exception as error:  # noqa: BLE001 - a task's outermost edge; it becomes the answer
        cnx.send_error(command.request_id, error)
        return
    if cnx.consumers.get(command.consumer_id) is consumer:
        cnx.forget_consumer(command.consumer_id)
    cnx.send(commands.success(command.request_id))


def handle_seek(cnx: CommandConnection, command: CommandSeek) -> None:
    """Move the subscription's cursor; its consumers get CLOSE_CONSUMER and subscribe again."""
    consumer = _consumer_of(cnx, command.consumer_id)
    if not command.HasField("message_id") and not command.HasField("message_publish_time"):
        raise ServiceMetadataError("Message id and message publish time were not present")
    check_ack_set(command.message_id.ack_set)
    cnx.spawn(_seek(cnx, command, consumer), f"seek {command.consumer_id}")


async def _seek(cnx: CommandConnection, command: CommandSeek, consumer: Consumer) -> None:
    subscription = consumer.subscription
    try:
        if command.HasField("message_id"):
            message_id = command.message_id
            ack_set = list(message_id.ack_set) or None
            await subscription.reset_to_position(position_of(message_id), ack_set)
        else:
            await subscription.reset_to_time(command.message_publish_time)
    except Exception as error:  # noqa: BLE001 - a task's outermost edge; it becomes the answer
        cnx.send_error(command.request_id, error)
        return
    cnx.send(commands.success(command.request_id))


def handle_get_last_message_id(cnx: CommandConnection, command: CommandGetLastMessageId) -> None:
    """Answer with the topic's last message and the subscription's mark-delete position."""
    consumer = _consumer_of(cnx, command.consumer_id)
    topic = cnx.consumer_topics[command.consumer_id]
    cnx.spawn(_get_last_message_id(cnx, command, consumer, topic), "last message id")


async def _get_last_message_id(
    cnx: CommandConnection, command: CommandGetLastMessageId, consumer: Consumer, topic: Topic
) -> None:
    try:
        compacted = await _last_compacted(topic) if consumer.reads_compacted else None
        position, batch_index = compacted or await _last_message(topic)
    except Exception as error:  # noqa: BLE001 - a task's outermost edge; it becomes the answer
        cnx.send_error(command.request_id, error)
        return
    subscription = consumer.subscription
    mark_delete_position = None
    if isinstance(subscription, PersistentSubscription):
        mark_delete_position = subscription.cursor.mark_delete_position
    cnx.send(
        commands.get_last_message_id_response(
            command.request_id,
            commands.message_id_data(
                position, partition_index=topic.name.partition_index, batch_index=batch_index
            ),
            mark_delete_position,
        )
    )


async def _last_compacted(topic: Topic) -> tuple[Position, int] | None:
    """The last message that a compaction kept, if nothing came after it; None: as for others.

    Where nothing was kept, the batch index is 0, as in Pulsar.
    """
    if not isinstance(topic, PersistentTopic) or topic.compaction is None:
        return None
    compacted = topic.compaction.compacted
    if compacted is None or topic.last_readable_entry() > compacted.horizon:
        return None
    try:
        record = await compacted.last_record()
    except LedgerNotFoundError:
        topic.compaction.on_missing(compacted)
        return None
    if record is None:
        return EARLIEST, 0
    metadata = parse_metadata(record.message)
    if not metadata.HasField("num_messages_in_batch"):
        return record.position, -1
    kept = metadata.compacted_batch_indexes
    return record.position, kept[-1] if kept else metadata.num_messages_in_batch - 1


async def _last_message(topic: Topic) -> tuple[Position, int]:
    """Position of the last entry for consumers, and batch index of its last message or -1.

    Markers are never delivered, so a client that read up to one would wait for ever. They are
    skipped, one by one, up to a limit. Entries that may not be dispatched yet don't count.
    """
    if not isinstance(topic, PersistentTopic):
        return topic.last_message_position(), -1
    position = topic.last_readable_position()
    for passed in range(_MAX_MARKERS_PASSED):
        if not (passed + 1) % _MARKERS_A_TURN:
            await asyncio.sleep(0)
        if position.entry_id < 0 or not topic.ledger.contains(position):
            return EARLIEST, -1
        entry = await topic.ledger.read_entry(position)
        try:
            metadata = parse_fields(entry.data)
        except RemoteProtocolError as error:
            raise ServiceMetadataError(f"the last message can't be read: {error}") from error
        if not metadata.HasField("marker_type"):
            is_batch = metadata.HasField("num_messages_in_batch")
            return position, metadata.num_messages_in_batch - 1 if is_batch else -1
        position = topic.ledger.previous_position(position)
    return position, -1


def handle_consumer_stats(cnx: CommandConnection, command: CommandConsumerStats) -> None:
    """Answer with a snapshot of one consumer."""
    consumer = cnx.consumers.get(command.consumer_id)
    if consumer is None:
        code, text = ConsumerNotFoundError.code, f"Consumer {command.consumer_id} not found"
        response = CommandConsumerStatsResponse(
            request_id=command.request_id, error_code=code, error_message=text
        )
        cnx.send(commands.consumer_stats_response(response))
        return
    cnx.send(commands.consumer_stats_response(_stats_of(command.request_id, consumer)))


def _stats_of(request_id: int, consumer: Consumer) -> CommandConsumerStatsResponse:
    stats = consumer.stats()
    subscription = consumer.subscription.stats()
    return CommandConsumerStatsResponse(
        request_id=request_id,
        msgRateOut=stats.message_out_rate,
        msgThroughputOut=stats.bytes_out_rate,
        msgRateRedeliver=stats.redelivered_rate,
        consumerName=stats.consumer_name,
        availablePermits=stats.available_permits % _UNSIGNED,
        unackedMessages=stats.unacked_messages % _UNSIGNED,
        blockedConsumerOnUnackedMsgs=stats.is_blocked_on_unacked_messages,
        address=stats.address,
        connectedSince=str(stats.connected_since_millis),
        type=subscription.subscription_type or "",
        msgRateExpired=subscription.expired_rate,
        msgBacklog=subscription.backlog_entries,
        messageAckRate=stats.acked_rate,
    )


def handle_close_consumer(cnx: CommandConnection, command: CommandCloseConsumer) -> None:
    """Close a consumer; an unknown id, or one that is still being created, succeeds, too."""
    pending = cnx.pending_consumers.pop(command.consumer_id, None)
    if pending is not None:
        pending.abandon()
    consumer = cnx.forget_consumer(command.consumer_id)
    cnx.send(commands.success(command.request_id))
    if consumer is not None:
        # After the answer: closing may send its entries to other consumers of this connection.
        consumer.close()
