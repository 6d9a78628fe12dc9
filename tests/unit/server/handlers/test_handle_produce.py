from __future__ import annotations

import pytest

from pulsar_py.common.errors import (
    InvalidTopicNameError,
    ProducerBlockedQuotaExceededError,
    ProducerFencedError,
    ServiceNotReadyError,
)
from pulsar_py.common.loops.work import MAX_UNITS
from pulsar_py.proto.PulsarApi_pb2 import (
    CommandCloseProducer,
    CommandProducer,
    KeyValue,
    ProducerAccessMode,
    Schema,
)
from pulsar_py.server.handlers.handle_produce import handle_producer
from pulsar_py.server.publishing.requests import ProducerGrant
from tests.unit.server.connection.standins import Server, settle

TOPIC = "persistent://public/default/t"


def produce(**fields: object) -> CommandProducer:
    arguments = {"topic": "t", "producer_id": 1, "request_id": 1, "producer_name": "p"}
    return CommandProducer(**arguments | fields)  # type: ignore[arg-type]


def close(request_id: int = 9) -> CommandCloseProducer:
    return CommandCloseProducer(producer_id=1, request_id=request_id)


async def test_producer_is_created_as_asked(server: Server) -> None:
    client = await server.connect()
    command = produce(
        epoch=3,
        encrypted=True,
        user_provided_producer_name=False,
        topic_epoch=5,
        producer_access_mode=ProducerAccessMode.Exclusive,
        initial_subscription_name="first",
        metadata=[KeyValue(key="k", value="v")],
    )
    answer = await client.asks(command)
    assert (answer.request_id, answer.producer_name, answer.last_sequence_id) == (1, "p", 41)
    request = server.topic().producers["p"].request
    assert (request.epoch, request.topic_epoch, request.is_encrypted) == (3, 5, True)
    assert request.access_mode == ProducerAccessMode.Exclusive
    assert (request.is_name_user_provided, request.initial_subscription_name) == (False, "first")
    assert request.metadata == {"k": "v"}
    assert request.connection is client.cnx


async def test_only_an_absent_name_is_generated(server: Server) -> None:
    client = await server.connect()
    await client.asks(CommandProducer(topic="t", producer_id=1, request_id=1))
    await client.asks(CommandProducer(topic="t", producer_id=2, request_id=2, producer_name=""))
    assert [each.request.name for each in server.topic().producers.values()] == [None, ""]


async def test_repeated_id_is_answered_with_the_first_producer(server: Server) -> None:
    client = await server.connect()
    await client.asks(produce())
    answer = await client.asks(produce(producer_name="other", topic="elsewhere", request_id=2))
    assert (answer.request_id, answer.producer_name, answer.last_sequence_id) == (2, "p", -1)
    assert list(server.topics.topics) == [TOPIC]


async def test_id_of_a_producer_still_being_created_is_refused(server: Server) -> None:
    client = await server.connect()
    client.sends(produce(), produce(request_id=2))
    refused, accepted = await client.receives()
    assert (refused.request_id, refused.error) == (2, ServiceNotReadyError.code)
    assert accepted.request_id == 1


async def test_bad_name_is_an_error(server: Server) -> None:
    client = await server.connect()
    error = await client.asks(produce(topic="nonsense://a/b/c"))
    assert (error.request_id, error.error) == (1, InvalidTopicNameError.code)


async def test_failure_frees_the_id(server: Server) -> None:
    client = await server.connect()
    server.topics.error = ServiceNotReadyError("not served here")
    error = await client.asks(produce())
    assert error.error == ServiceNotReadyError.code
    server.topics.error = None
    assert (await client.asks(produce(request_id=2))).request_id == 2


async def test_what_the_topic_forbids_is_told(server: Server) -> None:
    client = await server.connect()
    await client.asks(produce())
    server.topic().producer_error = ProducerBlockedQuotaExceededError("full")
    error = await client.asks(produce(producer_id=2, producer_name="q", request_id=2))
    assert error.error == ProducerBlockedQuotaExceededError.code


async def test_schema_is_stored_and_its_version_told(server: Server) -> None:
    client = await server.connect()
    schema = Schema(name="s", type=Schema.String, schema_data=b"")
    answer = await client.asks(produce(schema=schema))
    assert answer.schema_version == bytes(8)
    again = await client.asks(produce(request_id=2))
    assert again.schema_version == bytes(8)


async def test_closing_frees_the_id_once_publishes_are_answered(server: Server) -> None:
    client = await server.connect()
    await client.asks(produce())
    producer = server.topic().producers["p"]
    producer.may_close.clear()
    client.sends(close())
    assert not await client.receives()
    error = await client.asks(produce(request_id=2))
    assert error.error == ServiceNotReadyError.code
    producer.may_close.set()
    (answer,) = await client.receives()
    assert answer.request_id == 9
    assert 1 not in client.cnx.producers


async def test_closing_an_unknown_id_succeeds(server: Server) -> None:
    client = await server.connect()
    assert (await client.asks(close())).request_id == 9


async def test_closing_in_the_same_write_is_answered_after_the_producer(server: Server) -> None:
    client = await server.connect()
    client.sends(produce(), close(), close(request_id=10))
    created, closed, closed_again = await client.receives()
    assert (created.request_id, created.producer_name) == (1, "p")
    assert (closed.request_id, closed_again.request_id) == (9, 10)
    assert server.topic().producers["p"].is_closed
    assert not client.cnx.producers
    assert not client.cnx.pending_producers
    assert (await client.asks(produce(request_id=2))).request_id == 2


async def test_closing_while_created_waits_for_the_producers_answer(server: Server) -> None:
    client = await server.connect()
    server.topics.gate.clear()
    client.sends(produce(), close(), produce(request_id=3, producer_name="q"))
    (busy,) = await client.receives()
    assert (busy.request_id, busy.error) == (3, ServiceNotReadyError.code)
    server.topics.gate.set()
    assert [each.request_id for each in await client.receives()] == [1, 9]
    assert server.topic().producers["p"].is_closed
    assert (await client.asks(produce(request_id=4))).request_id == 4


async def test_closing_one_that_is_refused_in_the_same_write_succeeds(server: Server) -> None:
    client = await server.connect()
    server.topics.error = ServiceNotReadyError("not served here")
    client.sends(produce(), close())
    refused, closed = await client.receives()
    assert (refused.request_id, refused.error) == (1, ServiceNotReadyError.code)
    assert closed.request_id == 9


async def test_closing_in_the_same_write_takes_one_that_waits_from_the_topic(
    server: Server,
) -> None:
    client = await server.connect()
    await client.asks(produce(producer_id=5))
    topic = server.topic()
    topic.is_exclusive_taken = True
    client.sends(produce(producer_name="w", request_id=4), close())
    waits, closed = await client.receives()
    assert (waits.request_id, waits.producer_ready, closed.request_id) == (4, False, 9)
    assert topic.producers["w"].lost
    assert not client.cnx.pending_producers


async def test_a_connection_lost_while_created_and_closed_leaves_nothing(server: Server) -> None:
    client = await server.connect()
    server.topics.gate.clear()
    client.sends(produce(), close())
    await settle()
    client.cnx.connection_lost(None)
    server.topics.gate.set()
    await settle()
    assert all(each.lost for each in server.topic().producers.values())
    assert not client.cnx.pending_producers


async def test_waiting_producer_is_told_twice(server: Server) -> None:
    client = await server.connect()
    await client.asks(produce(producer_id=5))
    topic = server.topic()
    topic.is_exclusive_taken = True
    answer = await client.asks(produce(producer_name="w", request_id=4))
    assert not answer.producer_ready
    assert 1 not in client.cnx.producers
    waiting = topic.producers["w"]
    assert waiting.request.on_ready is not None
    waiting.request.on_ready(ProducerGrant(waiting, "w", -1, 7, is_ready=True))  # type: ignore[arg-type]
    (answer,) = await client.receives()
    assert (answer.request_id, answer.producer_ready, answer.topic_epoch) == (4, True, 7)
    assert client.cnx.producers[1] is waiting


async def test_waiting_producer_may_be_refused(server: Server) -> None:
    client = await server.connect()
    await client.asks(produce(producer_id=5))
    topic = server.topic()
    topic.is_exclusive_taken = True
    await client.asks(produce(producer_name="w", request_id=4))
    on_ready = topic.producers["w"].request.on_ready
    assert on_ready is not None
    on_ready(ProducerFencedError("fenced"))
    (error,) = await client.receives()
    assert (error.request_id, error.error) == (4, ProducerFencedError.code)
    assert not client.cnx.pending_producers


@pytest.mark.parametrize("is_lost", [True, False])
async def test_waiting_producer_that_gives_up_leaves_the_topic(
    server: Server, *, is_lost: bool
) -> None:
    client = await server.connect()
    await client.asks(produce(producer_id=5))
    topic = server.topic()
    topic.is_exclusive_taken = True
    await client.asks(produce(producer_name="w", request_id=4))
    if is_lost:
        client.cnx.connection_lost(None)
    else:
        await client.asks(close())
    waiting = topic.producers["w"]
    assert waiting.lost
    assert waiting.request.on_ready is not None
    waiting.request.on_ready(ProducerGrant(waiting, "w", -1, 7, is_ready=True))  # type: ignore[arg-type]
    waiting.request.on_ready(ProducerFencedError("fenced"))
    assert not await client.receives()


async def test_what_a_producer_holds_is_asserted_to_be_little(server: Server) -> None:
    """Larger commands are refused before they get here."""
    client = await server.connect()
    command = produce()
    for _ in range(MAX_UNITS + 1):
        command.metadata.add(key="", value="")
    with pytest.raises(AssertionError, match="10001 units at once"):
        handle_producer(client.cnx, command)


async def test_nothing_is_granted_once_it_is_doubtful_who_owns_the_topic(server: Server) -> None:
    client = await server.connect()
    server.namespaces.doubt = ServiceNotReadyError("in doubt")
    error = await client.asks(produce())
    assert (error.request_id, error.error) == (1, ServiceNotReadyError.code)
    assert all(each.lost for each in server.topic().producers.values())
    assert not client.cnx.producers
    server.namespaces.doubt = None
    assert (await client.asks(produce(request_id=2))).producer_name == "p"


async def test_a_waiting_producer_is_not_let_in_while_that_is_doubtful(server: Server) -> None:
    client = await server.connect()
    await client.asks(produce(producer_id=5))
    topic = server.topic()
    topic.is_exclusive_taken = True
    await client.asks(produce(producer_name="w", request_id=4))
    waiting = topic.producers["w"]
    server.namespaces.doubt = ServiceNotReadyError("in doubt")
    assert waiting.request.on_ready is not None
    waiting.request.on_ready(ProducerGrant(waiting, "w", -1, 7, is_ready=True))  # type: ignore[arg-type]
    (error,) = await client.receives()
    assert (error.request_id, error.error) == (4, ServiceNotReadyError.code)
    assert waiting.lost
    assert 1 not in client.cnx.producers
