"""Handlers of PRODUCER and CLOSE_PRODUCER; `ServerCnx` hands SEND to its producer itself.

    unknown --PRODUCER--> pending --PRODUCER_SUCCESS--> in `producers` --CLOSE_PRODUCER--> unknown
                             |  '--ERROR--> unknown
                             '--waits for exclusive access: success without "ready", later with it

Requests about one id are answered in their order: a CLOSE_PRODUCER that comes while its producer is
being created waits for the answer to the PRODUCER.

Source: ServerCnx.handleProducer, buildProducerAndAddTopic, handleCloseProducer in Pulsar's broker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from pulsar_py.common.errors import ServiceError, ServiceNotReadyError
from pulsar_py.common.loops.work import check_units
from pulsar_py.common.names import TopicName
from pulsar_py.proto.PulsarApi_pb2 import CommandCloseProducer, CommandProducer, Schema
from pulsar_py.server.handlers.authorizing import authorize, rights_version
from pulsar_py.server.handlers.handle_schema import schema_version_for_producer
from pulsar_py.server.handlers.pending import PendingProducer
from pulsar_py.server.publishing.requests import ProducerGrant, ProducerRequest
from pulsar_py.server.security.actions import Action
from pulsar_py.server.security.authorization import AccessTarget
from pulsar_py.wire import commands

if TYPE_CHECKING:
    from pulsar_py.server.handlers.command_connection import CommandConnection
    from pulsar_py.server.publishing.producer import Producer

_NO_SEQUENCE_ID = -1


def handle_producer(cnx: CommandConnection, command: CommandProducer) -> None:
    """Begin to create a producer; a repeated command is answered as the first one was."""
    producer_id, request_id = command.producer_id, command.request_id
    check_units(len(command.metadata))
    name = TopicName.parse(command.topic)
    producer = cnx.producers.get(producer_id)
    if producer is not None and not producer.is_closed:
        # The client timed out and repeats its request, but the first one has succeeded.
        _send_success_again(cnx, request_id, producer)
        return
    if producer is not None or producer_id in cnx.pending_producers:
        raise ServiceNotReadyError("Producer is already present on the connection")
    pending = PendingProducer()
    cnx.pending_producers[producer_id] = pending
    schema = command.schema if command.HasField("schema") else None
    request = _request_of(cnx, command, pending)
    cnx.spawn(
        _create(cnx, name, request, schema=schema, pending=pending, request_id=request_id),
        f"producer {name}",
    )


def _send_success_again(cnx: CommandConnection, request_id: int, producer: Producer) -> None:
    cnx.send(
        commands.producer_success(
            request_id, producer.name, schema_version=producer.request.schema_version
        )
    )


def _request_of(
    cnx: CommandConnection, command: CommandProducer, pending: PendingProducer
) -> ProducerRequest:
    request_id, producer_id = command.request_id, command.producer_id

    def on_ready(answer: ProducerGrant | ServiceError) -> None:
        _on_ready(cnx, request_id, producer_id, pending, answer)

    return ProducerRequest(
        connection=cnx,
        producer_id=producer_id,
        in_flight=cnx.in_flight,
        name=command.producer_name if command.HasField("producer_name") else None,
        epoch=command.epoch,
        is_name_user_provided=command.user_provided_producer_name,
        access_mode=command.producer_access_mode,
        topic_epoch=command.topic_epoch if command.HasField("topic_epoch") else None,
        is_encrypted=command.encrypted,
        is_transactional=command.txn_enabled,
        supports_partial_producer=cnx.handshake.supports_partial_producer,
        metadata={pair.key: pair.value for pair in command.metadata},
        initial_subscription_name=command.initial_subscription_name or None,
        on_ready=on_ready,
    )


async def _create(
    cnx: CommandConnection,
    name: TopicName,
    request: ProducerRequest,
    *,
    schema: Schema | None,
    pending: PendingProducer,
    request_id: int,
) -> None:
    try:
        rights = rights_version(cnx)
        await _authorize(cnx, name, request.initial_subscription_name)
        topic = await cnx.connections.topics.get_or_load(name, create_if_missing=True)
        await topic.check_producer_allowed(request)
        version = await schema_version_for_producer(
            cnx.connections.schemas, topic, schema, cnx.role
        )
        if pending.is_abandoned:
            return
        request = replace(request, schema_version=version)
        grant = await topic.add_producer(request)
        _check_session(cnx, grant)
        while rights != rights_version(cnx):
            rights = rights_version(cnx)
            await _authorize_again(cnx, name, request, grant)
    except Exception as error:  # noqa: BLE001 - a task's outermost edge; it becomes the answer
        _on_failed(cnx, request_id, request.producer_id, pending, error)
        return
    finally:
        # A waiting CLOSE_PRODUCER goes on in a later turn, so the answer below is sent before its.
        pending.on_answered()
    if pending.is_abandoned:
        grant.producer.on_connection_lost()
        return
    if grant.is_ready:
        _register(cnx, request.producer_id, pending, grant.producer)
    else:
        pending.producer = grant.producer
    _send_success(cnx, request_id, grant)


async def _authorize(
    cnx: CommandConnection, name: TopicName, initial_subscription_name: str | None
) -> None:
    """Check the right to produce, and to make the initial subscription if there is one."""
    refusal = "Client is not authorized to Produce"
    await authorize(cnx, Action.PRODUCE, AccessTarget.of_topic(name), refusal)
    if initial_subscription_name:
        target = AccessTarget.of_topic(name, initial_subscription_name)
        await authorize(cnx, Action.CONSUME, target, refusal)


async def _authorize_again(
    cnx: CommandConnection, name: TopicName, request: ProducerRequest, grant: ProducerGrant
) -> None:
    """Check the rights of an admitted producer, which changed meanwhile."""
    try:
        await _authorize(cnx, name, request.initial_subscription_name)
    except ServiceError:
        grant.producer.on_connection_lost()
        raise


def _check_session(cnx: CommandConnection, grant: ProducerGrant) -> None:
    """Remove the admitted producer again if another broker may own the topic by now.

    Raises:
        ServiceNotReadyError: The session with the metadata store is in doubt.
    """
    try:
        cnx.connections.namespaces.check_session()
    except ServiceNotReadyError:
        grant.producer.on_connection_lost()
        raise


def _register(
    cnx: CommandConnection, producer_id: int, pending: PendingProducer, producer: Producer
) -> None:
    if cnx.pending_producers.get(producer_id) is pending:
        del cnx.pending_producers[producer_id]
    cnx.closed_producers.discard(producer_id)
    cnx.producers[producer_id] = producer


def _on_ready(
    cnx: CommandConnection,
    request_id: int,
    producer_id: int,
    pending: PendingProducer,
    answer: ProducerGrant | ServiceError,
) -> None:
    """Answer a producer that waited for exclusive access, and got it or failed."""
    if pending.is_abandoned:
        if isinstance(answer, ProducerGrant):
            answer.producer.on_connection_lost()
    elif isinstance(answer, ProducerGrant):
        try:
            _check_session(cnx, answer)
        except ServiceNotReadyError as error:
            _on_failed(cnx, request_id, producer_id, pending, error)
            return
        _register(cnx, producer_id, pending, answer.producer)
        _send_success(cnx, request_id, answer)
    else:
        _on_failed(cnx, request_id, producer_id, pending, answer)


def _on_failed(
    cnx: CommandConnection,
    request_id: int,
    producer_id: int,
    pending: PendingProducer,
    error: Exception,
) -> None:
    if pending.is_abandoned:
        return
    if cnx.pending_producers.get(producer_id) is pending:
        del cnx.pending_producers[producer_id]
    cnx.send_error(request_id, error)


def _send_success(cnx: CommandConnection, request_id: int, grant: ProducerGrant) -> None:
    cnx.send(
        commands.producer_success(
            request_id,
            grant.producer_name,
            last_sequence_id=grant.last_sequence_id,
            schema_version=grant.producer.request.schema_version,
            topic_epoch=grant.topic_epoch,
            is_ready=grant.is_ready,
        )
    )


def handle_close_producer(cnx: CommandConnection, command: CommandCloseProducer) -> None:
    """Close a producer after its publishes are answered; unknown ids succeed."""
    pending = cnx.pending_producers.get(command.producer_id)
    if pending is not None and not pending.is_answered:
        # Clients match answers by request id, but need those about one producer in order.
        work = _close_once_created(cnx, command, pending)
        cnx.spawn(work, f"close producer {command.producer_id}")
        return
    _close_known(cnx, command)


async def _close_once_created(
    cnx: CommandConnection, command: CommandCloseProducer, pending: PendingProducer
) -> None:
    await pending.wait_until_answered()
    _close_known(cnx, command)


def _close_known(cnx: CommandConnection, command: CommandCloseProducer) -> None:
    """Close a producer that is connected or waits for exclusive access."""
    producer_id = command.producer_id
    pending = cnx.pending_producers.pop(producer_id, None)
    if pending is not None:
        pending.abandon()
    producer = cnx.producers.get(producer_id)
    if producer is None:
        cnx.send(commands.success(command.request_id))
        return
    cnx.spawn(_close(cnx, command, producer), f"close producer {producer_id}")


async def _close(cnx: CommandConnection, command: CommandCloseProducer, producer: Producer) -> None:
    try:
        await producer.close()
    except Exception as error:  # noqa: BLE001 - a task's outermost edge; it becomes the answer
        cnx.send_error(command.request_id, error)
        return
    finally:
        if cnx.producers.get(command.producer_id) is producer:
            del cnx.producers[command.producer_id]
    cnx.send(commands.success(command.request_id))
