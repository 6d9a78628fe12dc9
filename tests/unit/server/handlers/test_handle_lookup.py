from __future__ import annotations

import pytest

from pulsar_py.common.errors import (
    InvalidTopicNameError,
    NotAllowedError,
    ServiceMetadataError,
    ServiceNotReadyError,
    TooManyRequestsError,
)
from pulsar_py.proto.PulsarApi_pb2 import (
    CommandGetTopicsOfNamespace,
    CommandLookupTopic,
    CommandLookupTopicResponse,
    CommandPartitionedTopicMetadata,
    CommandPartitionedTopicMetadataResponse,
    CommandWatchTopicList,
    CommandWatchTopicListClose,
)
from pulsar_py.server.handlers.settings import ConnectionSettings
from pulsar_py.server.handlers.topic_patterns import topics_hash
from tests.unit.server.connection.standins import Server

TOPIC = "persistent://public/default/t"
A, B = (f"persistent://public/ns/{letter}" for letter in "ab")


@pytest.fixture
def settings() -> ConnectionSettings:
    return ConnectionSettings(max_pending_lookups=2)


def watch(**fields: object) -> CommandWatchTopicList:
    arguments = {
        "request_id": 1,
        "watcher_id": 7,
        "namespace": "public/ns",
        "topics_pattern": "public/ns/.*",
    }
    return CommandWatchTopicList(**arguments | fields)  # type: ignore[arg-type]


async def test_lookup_is_answered_with_the_owner(server: Server) -> None:
    client = await server.connect()
    answer = await client.asks(
        CommandLookupTopic(
            topic="t", request_id=5, authoritative=True, advertised_listener_name="inside"
        )
    )
    assert answer.request_id == 5
    assert answer.response == CommandLookupTopicResponse.Connect
    assert answer.brokerServiceUrl == "pulsar://here:6650"
    assert server.namespaces.asked == [(TOPIC, True, "inside")]


async def test_lookup_that_fails_says_so_in_its_own_answer(server: Server) -> None:
    client = await server.connect()
    answer = await client.asks(CommandLookupTopic(topic="a/b", request_id=5))
    assert answer.response == CommandLookupTopicResponse.Failed
    assert answer.error == InvalidTopicNameError.code
    server.namespaces.error = ServiceNotReadyError("unloading")
    answer = await client.asks(CommandLookupTopic(topic="t", request_id=6))
    assert (answer.request_id, answer.error) == (6, ServiceNotReadyError.code)


async def test_partitions_are_answered(server: Server) -> None:
    client = await server.connect()
    server.topics.partitions_count = 3
    answer = await client.asks(CommandPartitionedTopicMetadata(topic="t", request_id=5))
    assert (answer.request_id, answer.partitions) == (5, 3)
    answer = await client.asks(CommandPartitionedTopicMetadata(topic="", request_id=6))
    assert answer.response == CommandPartitionedTopicMetadataResponse.Failed
    assert answer.error == InvalidTopicNameError.code


async def test_lookups_of_all_connections_have_one_limit(server: Server) -> None:
    one, other = await server.connect(), await server.connect()
    server.topics.gate.clear()
    one.sends(CommandPartitionedTopicMetadata(topic="t", request_id=1))
    other.sends(CommandPartitionedTopicMetadata(topic="t", request_id=1))
    for command in (
        CommandPartitionedTopicMetadata(topic="t", request_id=2),
        CommandLookupTopic(topic="t", request_id=2),
        CommandGetTopicsOfNamespace(namespace="public/ns", request_id=2),
        watch(request_id=2),
    ):
        answer = await one.asks(command)
        assert (answer.request_id, answer.error) == (2, TooManyRequestsError.code)
    server.topics.gate.set()
    assert (await one.receives())[0].request_id == 1
    assert (await one.asks(CommandLookupTopic(topic="t", request_id=3))).request_id == 3


async def test_topics_are_listed(server: Server) -> None:
    server.topics.listed = [A, B]
    client = await server.connect()
    command = CommandGetTopicsOfNamespace(namespace="public/ns", request_id=5)
    answer = await client.asks(command)
    assert list(answer.topics) == [A, B]
    assert (answer.filtered, answer.changed) == (False, True)
    command.topics_hash = answer.topics_hash
    answer = await client.asks(command)
    assert (list(answer.topics), answer.changed) == ([], False)


async def test_topics_are_filtered_by_short_patterns_only(server: Server) -> None:
    server.topics.listed = [A, B]
    client = await server.connect()
    command = CommandGetTopicsOfNamespace(
        namespace="public/ns", topics_pattern="public/ns/a", request_id=5
    )
    answer = await client.asks(command)
    assert (list(answer.topics), answer.filtered) == ([A], True)
    assert answer.topics_hash == topics_hash([A])
    command.topics_pattern = "public/ns/a|" + "x" * 50
    answer = await client.asks(command)
    assert (list(answer.topics), answer.filtered) == ([A, B], False)


async def test_list_that_cannot_be_had_is_an_error(server: Server) -> None:
    client = await server.connect()
    command = CommandGetTopicsOfNamespace(namespace="public", request_id=5)
    error = await client.asks(command)
    assert (error.request_id, error.error) == (5, InvalidTopicNameError.code)
    command = CommandGetTopicsOfNamespace(namespace="a/b", topics_pattern="(", request_id=6)
    error = await client.asks(command)
    assert (error.request_id, error.error) == (6, ServiceMetadataError.code)
    assert not client.is_closed


async def test_watch_starts_with_the_list(server: Server) -> None:
    server.topics.listed = [A, B]
    client = await server.connect()
    answer = await client.asks(watch())
    assert (answer.request_id, answer.watcher_id, list(answer.topic)) == (1, 7, [A, B])
    answer = await client.asks(watch(request_id=2, topics_hash=answer.topics_hash))
    assert (answer.request_id, list(answer.topic)) == (2, [])
    assert len(server.topics.watchers) == 1


async def test_watch_ends_when_asked_or_with_the_connection(server: Server) -> None:
    client = await server.connect()
    await client.asks(watch())
    for request_id in (8, 9):
        command = CommandWatchTopicListClose(request_id=request_id, watcher_id=7)
        assert (await client.asks(command)).request_id == request_id
        assert not server.topics.watchers
    await client.asks(watch())
    client.cnx.close()
    assert not server.topics.watchers


async def test_watch_closed_while_it_starts_is_not_answered(server: Server) -> None:
    client = await server.connect()
    server.topics.gate.clear()
    client.sends(watch())
    answer = await client.asks(CommandWatchTopicListClose(request_id=2, watcher_id=7))
    assert answer.request_id == 2
    server.topics.gate.set()
    assert not await client.receives()
    assert not server.topics.watchers


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"topics_pattern": "x" * 51}, NotAllowedError.code),
        ({"topics_pattern": "("}, InvalidTopicNameError.code),
        ({"namespace": "public"}, InvalidTopicNameError.code),
    ],
)
async def test_bad_watches_are_refused(
    server: Server, fields: dict[str, object], code: int
) -> None:
    client = await server.connect()
    error = await client.asks(watch(**fields))
    assert (error.request_id, error.error) == (1, code)


async def test_failing_watch_leaves_nothing(server: Server) -> None:
    client = await server.connect()
    server.topics.error = ServiceMetadataError("broken")
    error = await client.asks(watch())
    assert error.error == ServiceMetadataError.code
    assert not server.topics.watchers
    assert not client.cnx.watchers
