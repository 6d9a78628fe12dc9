"""Lookups over REST against a server in memory, in virtual time."""

from __future__ import annotations

import json
import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from pulsar_py.client.brokers.client_config import ClientConfig
from pulsar_py.client.brokers.client_context import ClientContext
from pulsar_py.client.brokers.http_lookup import HttpLookup
from pulsar_py.client.brokers.service_url import BrokerAddress, ServiceUrl
from pulsar_py.client.security.authentication import AuthenticationToken
from pulsar_py.client.shared.enums import RegexSubscriptionMode
from pulsar_py.common.errors import (
    AuthenticationError,
    AuthorizationError,
    ClientTimeoutError,
    ConnectError,
    IncompatibleSchemaError,
    InvalidTopicNameError,
    LookupFailedError,
    RemoteProtocolError,
    ServiceNotReadyError,
    TopicNotFoundError,
    UnknownServiceError,
)
from pulsar_py.common.hashing import topics_hash
from pulsar_py.proto.PulsarApi_pb2 import Schema
from pulsar_py.testing.clock import VirtualClock
from pulsar_py.testing.network import run_simulated
from tests.http_server import Answer, Asked, HttpServer

TOPIC = "persistent://public/default/my topic"
FOUND = {"brokerUrl": "pulsar://b:6650", "brokerUrlTls": "pulsar+ssl://b:6651"}

Work = Callable[[HttpServer, HttpLookup], Awaitable[None]]


def with_server(
    answer: Callable[[Asked], Answer], work: Work, *, hosts: str = "{}", **options: Any
) -> None:
    async def run() -> None:
        async with HttpServer(answer).running() as server:
            url = ServiceUrl.parse("http://" + hosts.format(f"localhost:{server.port}"))
            config = ClientConfig(**{"operation_timeout_seconds": 30, **options})
            clock, chance = VirtualClock(), random.Random(1)
            context = ClientContext(url, config, clock=clock, chance=chance)
            lookup = context.lookup
            assert isinstance(lookup, HttpLookup)
            await work(server, lookup)
            await context.close()

    run_simulated(run())


def fixed(value: Any, status: int = 200) -> Callable[[Asked], Answer]:
    return lambda _: Answer.json(value, status)


def test_a_broker_is_found() -> None:
    async def work(server: HttpServer, lookup: HttpLookup) -> None:
        assert await lookup.lookup(TOPIC) == BrokerAddress("b:6650", "b:6650", is_tls=False)
        assert server.asked[0].target == "/lookup/v2/topic/persistent/public/default/my%20topic"

    with_server(fixed(FOUND), work)


def test_listener_and_credentials_go_along() -> None:
    async def work(server: HttpServer, lookup: HttpLookup) -> None:
        await lookup.lookup(TOPIC)
        assert server.asked[0].target.endswith("?listenerName=outer+one")
        assert server.asked[0].headers["authorization"] == "Bearer t"

    with_server(
        fixed(FOUND), work, listener_name="outer one", authentication=AuthenticationToken("t")
    )


def test_redirects_are_followed() -> None:
    def answer(asked: Asked) -> Answer:
        if asked.target.startswith("/lookup"):
            return Answer(307, b"", {"Location": "/elsewhere?authoritative=true"})
        return Answer.json(FOUND)

    async def work(server: HttpServer, lookup: HttpLookup) -> None:
        assert (await lookup.lookup(TOPIC)).physical == "b:6650"
        assert server.asked[1].target == "/elsewhere?authoritative=true"

    with_server(answer, work)


def test_redirects_have_a_limit() -> None:
    async def work(server: HttpServer, lookup: HttpLookup) -> None:
        with pytest.raises(LookupFailedError, match="more than 3 redirects"):
            await lookup.lookup(TOPIC)
        assert len(server.asked) == 4

    def answer(asked: Asked) -> Answer:
        return Answer(307, b"", {"Location": asked.target + "x"})

    with_server(answer, work, max_lookup_redirects=3)


@pytest.mark.parametrize("location", ["", "ftp://x/", "pulsar://x:1"])
def test_a_redirect_to_nowhere_is_refused(location: str) -> None:
    async def work(server: HttpServer, lookup: HttpLookup) -> None:
        with pytest.raises(LookupFailedError, match="a redirect to"):
            await lookup.lookup(TOPIC)

    with_server(lambda _: Answer(307, b"", {"Location": location}), work)


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"brokerUrl": None},
        {"brokerUrl": "nonsense"},
        {"brokerUrl": "http://b:1"},
        {"brokerUrl": "pulsar+ssl://b:1"},
    ],
)
def test_an_answer_without_broker_names_the_topic(value: dict[str, Any]) -> None:
    async def work(server: HttpServer, lookup: HttpLookup) -> None:
        with pytest.raises(LookupFailedError, match=r"my topic: .*answers"):
            await lookup.lookup(TOPIC)

    with_server(fixed(value), work)


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (401, AuthenticationError),
        (403, AuthorizationError),
        (404, TopicNotFoundError),
        (412, LookupFailedError),
        (500, UnknownServiceError),
        (503, ServiceNotReadyError),
    ],
)
def test_statuses_are_errors_with_the_server_s_reason(status: int, error: type[Exception]) -> None:
    async def work(server: HttpServer, lookup: HttpLookup) -> None:
        with pytest.raises(error, match="because"):
            await lookup.lookup(TOPIC)

    with_server(fixed({"reason": "because"}, status), work)


def test_what_is_no_object_is_told() -> None:
    async def work(server: HttpServer, lookup: HttpLookup) -> None:
        with pytest.raises(RemoteProtocolError, match="expected a JSON object"):
            await lookup.lookup(TOPIC)
        with pytest.raises(InvalidTopicNameError):
            await lookup.lookup("nonsense://x")

    with_server(fixed([]), work)


def test_a_host_that_does_not_answer_gives_its_place_to_the_next() -> None:
    async def work(server: HttpServer, lookup: HttpLookup) -> None:
        outcomes = []
        for _ in range(2):
            try:
                outcomes.append((await lookup.lookup(TOPIC)).physical)
            except ConnectError:
                outcomes.append("down")
        assert outcomes == ["down", "b:6650"]

    with_server(fixed(FOUND), work, hosts="localhost:1,{}")


def test_a_refused_port_is_logged_once_with_its_url(caplog: pytest.LogCaptureFixture) -> None:
    async def work(server: HttpServer, lookup: HttpLookup) -> None:
        for _ in range(2):
            with pytest.raises(ConnectError):
                await lookup.lookup(TOPIC)

    with_server(fixed(FOUND), work, hosts="localhost:1")

    (record,) = [each for each in caplog.records if each.name.endswith("http_lookup")]
    assert record.levelname == "WARNING"
    assert record.getMessage().startswith("no answer from http://localhost:1: ")


def test_silence_ends_with_the_operation_s_time() -> None:
    async def work(server: HttpServer, lookup: HttpLookup) -> None:
        with pytest.raises(ClientTimeoutError):
            await lookup.lookup(TOPIC)
        with pytest.raises(ClientTimeoutError):
            await lookup.partitions_count(TOPIC)

    with_server(lambda _: Answer(is_silent=True), work, operation_timeout_seconds=5)


def test_partitions_are_counted() -> None:
    async def work(server: HttpServer, lookup: HttpLookup) -> None:
        assert await lookup.partitions_count(TOPIC) == 4
        assert await lookup.partitions_count(TOPIC, may_create=False) == 4
        path = "/admin/v2/persistent/public/default/my%20topic/partitions?checkAllowAutoCreation="
        assert [asked.target for asked in server.asked] == [path + "true", path + "false"]

    with_server(fixed({"partitions": 4}), work)


@pytest.mark.parametrize("count", [None, -1, "4", 10**9])
def test_a_count_that_makes_no_sense_is_refused(count: object) -> None:
    async def work(server: HttpServer, lookup: HttpLookup) -> None:
        with pytest.raises((LookupFailedError, ClientTimeoutError), match="partitions="):
            await lookup.partitions_count(TOPIC)

    with_server(fixed({"partitions": count}), work, operation_timeout_seconds=1)


def test_what_may_succeed_later_is_repeated() -> None:
    answers = iter([Answer.json({}, 503), Answer(raw=b""), Answer.json({"partitions": 1})])

    async def work(server: HttpServer, lookup: HttpLookup) -> None:
        assert await lookup.partitions_count(TOPIC) == 1

    with_server(lambda _: next(answers), work)


def test_what_is_final_is_not_repeated() -> None:
    async def work(server: HttpServer, lookup: HttpLookup) -> None:
        with pytest.raises(TopicNotFoundError):
            await lookup.partitions_count(TOPIC)
        assert len(server.asked) == 1

    with_server(fixed({"reason": "no"}, 404), work)


def test_topics_are_listed() -> None:
    topics = ["persistent://t/n/b", "persistent://t/n/a"]

    async def work(server: HttpServer, lookup: HttpLookup) -> None:
        mode = RegexSubscriptionMode.AllTopics
        found = await lookup.topics_of_namespace("t/n", mode, pattern="t/n/.*")
        assert server.asked[0].target == "/admin/v2/namespaces/t/n/topics?mode=ALL"
        assert found.topics == tuple(topics)
        assert (found.is_changed, found.is_filtered) == (True, False)
        assert found.topics_hash == topics_hash(topics)
        again = await lookup.topics_of_namespace("t/n", mode, topics_hash=found.topics_hash)
        assert (again.is_changed, again.topics) == (False, ())

    with_server(fixed(topics), work)


def test_a_list_of_something_else_is_refused() -> None:
    async def work(server: HttpServer, lookup: HttpLookup) -> None:
        with pytest.raises(LookupFailedError, match=r"t/n: .*a list of topics"):
            await lookup.topics_of_namespace("t/n", RegexSubscriptionMode.PersistentOnly)

    with_server(fixed([1]), work)


def test_statistics_are_handed_on_as_they_are() -> None:
    async def work(server: HttpServer, lookup: HttpLookup) -> None:
        assert await lookup.stats(TOPIC) == {"deduplicationStatus": "Enabled"}
        assert server.asked[0].target == "/admin/v2/persistent/public/default/my%20topic/stats"

    with_server(fixed({"deduplicationStatus": "Enabled"}), work)


def test_a_schema_is_found_by_version() -> None:
    async def work(server: HttpServer, lookup: HttpLookup) -> None:
        found = await lookup.schema(TOPIC + "-partition-1", (3).to_bytes(8, "big"))
        assert found is not None
        assert (found.schema.type, found.schema.schema_data) == (Schema.Json, b"{}")
        assert found.version == (3).to_bytes(8, "big")
        path = "/admin/v2/schemas/public/default/my%20topic/schema"
        assert server.asked[0].target == path + "/3"
        await lookup.schema(TOPIC)
        assert server.asked[1].target == path

    with_server(fixed({"version": 3, "type": "JSON", "data": "{}", "properties": {}}), work)


def test_no_schema_is_none() -> None:
    async def work(server: HttpServer, lookup: HttpLookup) -> None:
        assert await lookup.schema(TOPIC) is None

    with_server(fixed({"reason": "Schema not found"}, 404), work)


def test_a_schema_is_registered() -> None:
    schema = Schema(name="s", type=Schema.Json, schema_data=b"{}")

    async def work(server: HttpServer, lookup: HttpLookup) -> None:
        assert await lookup.get_or_create_schema(TOPIC, schema) == (7).to_bytes(8, "big")
        asked = server.asked[0]
        assert asked.method == "POST"
        assert asked.headers["content-type"] == "application/json"
        assert json.loads(asked.body) == {"type": "JSON", "schema": "{}", "properties": {}}

    with_server(fixed({"version": {"version": 7}}), work)


def test_a_schema_that_does_not_fit_is_told() -> None:
    async def work(server: HttpServer, lookup: HttpLookup) -> None:
        with pytest.raises(IncompatibleSchemaError, match="no"):
            await lookup.get_or_create_schema(TOPIC, Schema(name="s", type=Schema.String))

    with_server(fixed({"reason": "no"}, 409), work)
