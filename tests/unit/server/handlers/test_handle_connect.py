from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator

import pytest

from pulsar_py.common.errors import AuthenticationError
from pulsar_py.proto.PulsarApi_pb2 import (
    AuthData,
    CommandAuthResponse,
    CommandConnect,
    CommandLookupTopic,
    CommandPing,
    CommandPong,
    CommandProducer,
    FeatureFlags,
)
from pulsar_py.server.handlers.settings import (
    MAX_STRANGER_FRAME_BYTES,
    ConnectionSettings,
)
from pulsar_py.server.schema_registry import SchemaRegistry
from pulsar_py.server.security.authentication import (
    REFRESH_CHALLENGE,
    Authenticated,
    Authenticators,
    Challenge,
    ClientCredentials,
)
from pulsar_py.testing.clock import START_WALL_MILLIS, VirtualClock
from tests.unit.server.connection.standins import TOPIC, Server, send_frame

REFRESH = FeatureFlags(supports_auth_refresh=True)


class Riddle:
    """A method: `role:seconds` is let in, `ask` gets a question first, all else is refused."""

    method_name = "riddle"

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock

    def new_state(self, credentials: ClientCredentials) -> Riddle:
        self.credentials = credentials
        return self

    async def authenticate(self, auth_data: bytes) -> Authenticated | Challenge:
        if auth_data == b"ask":
            return Challenge(b"what is it?")
        role, _, seconds = auth_data.decode().partition(":")
        if not seconds:
            raise AuthenticationError("no answer")
        return Authenticated(role, self._clock.wall_time_millis() + 1000 * int(seconds))


@pytest.fixture
async def guarded(
    virtual_clock: VirtualClock, settings: ConnectionSettings, schemas: SchemaRegistry
) -> AsyncIterator[Server]:
    authenticators = Authenticators({"riddle": Riddle(virtual_clock)})
    server = Server(virtual_clock, settings, schemas, authenticators)
    server.connections.start()
    yield server
    await server.connections.close()


def connect(data: bytes, method: str = "riddle", **fields: object) -> CommandConnect:
    return CommandConnect(
        client_version="x",
        protocol_version=21,
        auth_method_name=method,
        auth_data=data,
        **fields,  # type: ignore[arg-type]
    )


def respond(data: bytes) -> CommandAuthResponse:
    return CommandAuthResponse(response=AuthData(auth_method_name="riddle", auth_data=data))


async def test_connected_says_what_the_broker_can(
    server: Server, settings: ConnectionSettings
) -> None:
    client = server.open()
    answer = await client.asks(CommandConnect(client_version="x", protocol_version=12))
    assert answer.protocol_version == 12
    assert answer.max_message_size == settings.max_message_bytes
    assert answer.server_version == settings.server_version
    flags = answer.feature_flags
    assert flags.supports_topic_watchers
    assert not flags.supports_scalable_topics


async def test_connecting_twice_closes_the_connection(server: Server) -> None:
    client = await server.connect()
    client.sends(CommandConnect(client_version="x"))
    assert client.is_closed


async def test_pong_needs_no_answer(server: Server) -> None:
    client = await server.connect()
    client.sends(CommandPong())
    assert not await client.receives()


async def test_unasked_auth_response_closes_the_connection(server: Server) -> None:
    client = await server.connect()
    client.sends(respond(b"me:1"))
    assert client.is_closed


async def test_good_credentials_let_in(guarded: Server) -> None:
    client = guarded.open()
    answer = await client.asks(connect(b"me:100"))
    assert answer.DESCRIPTOR.name == "CommandConnected"
    assert client.cnx.role == "me"


@pytest.mark.parametrize("command", [connect(b"nothing"), connect(b"me:1", method="other")])
async def test_bad_credentials_are_told_and_closed(
    guarded: Server, command: CommandConnect
) -> None:
    client = guarded.open()
    error = await client.asks(command)
    assert error.error == AuthenticationError.code
    assert client.is_closed


async def test_anonymous_role_takes_in_unknown_methods(guarded: Server) -> None:
    providers = guarded.connections.authenticators.providers
    guarded.connections.authenticators = Authenticators(providers, anonymous_role="nobody")
    client = guarded.open()
    answer = await client.asks(connect(b"", method="other"))
    assert answer.DESCRIPTOR.name == "CommandConnected"
    assert client.cnx.role == "nobody"


async def test_a_method_is_told_who_asks_and_for_whom(guarded: Server) -> None:
    riddle = guarded.connections.authenticators.providers["riddle"]
    assert isinstance(riddle, Riddle)
    client = guarded.open("10.0.0.7")
    await client.asks(connect(b"me:100"))
    assert riddle.credentials == ClientCredentials(method_name="riddle", peer=client.cnx.peer)
    assert client.cnx.peer.remote_address.startswith("/10.0.0.7:")
    assert client.cnx.original_principal is None

    proxy = guarded.open()
    original = {"original_principal": "you", "original_auth_data": "x", "original_auth_method": "m"}
    await proxy.asks(connect(b"proxy:100", **original))
    assert riddle.credentials == ClientCredentials(method_name="riddle", peer=proxy.cnx.peer)
    assert proxy.cnx.original_principal == "you"


async def test_methods_may_ask_back(guarded: Server) -> None:
    client = guarded.open()
    challenge = await client.asks(connect(b"ask"))
    assert challenge.challenge.auth_data == b"what is it?"
    assert challenge.challenge.auth_method_name == "riddle"
    answer = await client.asks(respond(b"me:100"))
    assert answer.DESCRIPTOR.name == "CommandConnected"


async def test_commands_before_the_credentials_close_the_connection(guarded: Server) -> None:
    client = guarded.open()
    await client.asks(connect(b"ask"))
    client.sends(connect(b"me:100"))
    assert client.is_closed


async def test_expired_credentials_are_refreshed(
    guarded: Server, settings: ConnectionSettings
) -> None:
    client = guarded.open()
    await client.asks(connect(b"me:1", feature_flags=REFRESH))
    challenge = await until_checked(guarded, client, settings)
    assert challenge.challenge.auth_data == REFRESH_CHALLENGE
    client.sends(respond(b"me:1000"))
    assert not await client.receives()
    assert client.cnx.credentials is not None
    assert client.cnx.credentials.expires_at_millis is not None
    assert client.cnx.credentials.expires_at_millis > START_WALL_MILLIS + 1_000_000


async def test_of_many_answers_at_once_the_last_is_checked(
    guarded: Server, settings: ConnectionSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = guarded.open()
    await client.asks(connect(b"me:1", feature_flags=REFRESH))
    await until_checked(guarded, client, settings)
    checked: list[bytes] = []
    authenticate = Riddle.authenticate

    async def noted(self: Riddle, auth_data: bytes) -> Authenticated | Challenge:
        checked.append(auth_data)
        await asyncio.sleep(0.001)
        return await authenticate(self, auth_data)

    monkeypatch.setattr(Riddle, "authenticate", noted)
    client.sends(*(respond(b"me:%d" % seconds) for seconds in range(1, 100)))
    await asyncio.sleep(0.0005)
    client.sends(respond(b"me:1000"), respond(b"me:2000"))
    await asyncio.sleep(0.01)
    assert not client.is_closed
    assert checked == [b"me:99", b"me:2000"]
    assert client.cnx.newest_auth_data is None
    client.sends(respond(b"other:1000"))
    await asyncio.sleep(0.01)
    assert client.is_closed


async def test_nothing_is_served_for_expired_credentials(
    guarded: Server, settings: ConnectionSettings
) -> None:
    client = guarded.open()
    await client.asks(connect(b"me:1", feature_flags=REFRESH))
    await client.asks(CommandProducer(topic=TOPIC, producer_id=1, request_id=1, producer_name="p"))
    producer = guarded.topic().producers["p"]
    await until_checked(guarded, client, settings)
    writable: list[bool] = []
    client.cnx.when_writable(lambda: writable.append(client.cnx.is_writable))
    client.sends(CommandLookupTopic(topic=TOPIC, request_id=7))
    client.cnx.data_received(send_frame(b"one", sequence_id=1))
    client.cnx.data_received(send_frame(b"two", sequence_id=2))
    answers = [await client.asks(CommandPing())]
    assert [each.DESCRIPTOR.name for each in answers] == ["CommandPong"]
    assert not client.cnx.is_writable
    assert (producer.published, writable) == ([], [])

    client.sends(respond(b"me:1000"), CommandLookupTopic(topic=TOPIC, request_id=8))
    answers = await client.receives()
    assert [each.request_id for each in answers] == [7, 8]
    assert len(producer.published) == 2
    assert writable == [True]


async def test_only_so_much_waits_for_other_credentials(
    guarded: Server, settings: ConnectionSettings
) -> None:
    client = guarded.open()
    await client.asks(connect(b"me:1", feature_flags=REFRESH))
    await until_checked(guarded, client, settings)
    payload = bytes(settings.max_frame_bytes // 4)
    for _ in range(3):
        client.cnx.data_received(send_frame(payload))
    assert not client.is_closed
    client.cnx.data_received(send_frame(payload))
    assert client.is_closed


async def test_refresh_to_another_role_closes_the_connection(
    guarded: Server, settings: ConnectionSettings
) -> None:
    client = guarded.open()
    await client.asks(connect(b"me:1", feature_flags=REFRESH))
    await until_checked(guarded, client, settings)
    client.sends(respond(b"other:1000"))
    assert await client.receives() == []
    assert client.is_closed


async def test_refresh_without_answer_closes_the_connection(
    guarded: Server, settings: ConnectionSettings
) -> None:
    client = guarded.open()
    await client.asks(connect(b"me:1", feature_flags=REFRESH))
    await until_checked(guarded, client, settings)
    for _ in range(4):
        await asyncio.sleep(settings.authentication_refresh_check_seconds / 4)
        client.sends(CommandPing())
    assert client.is_closed


async def test_client_that_cannot_refresh_is_closed(
    guarded: Server, settings: ConnectionSettings
) -> None:
    client = guarded.open()
    await client.asks(connect(b"me:1"))
    for _ in range(5):
        await asyncio.sleep(settings.authentication_refresh_check_seconds / 4)
        if not client.is_closed:
            client.sends(CommandPing())
    assert client.is_closed


async def until_checked(guarded: Server, client: object, settings: ConnectionSettings) -> object:
    """The broker's next look at credentials; keeps the connection alive until then."""
    for _ in range(8):
        await asyncio.sleep(settings.authentication_refresh_check_seconds / 8)
        client.sends(CommandPing())  # type: ignore[attr-defined]
        for answer in await client.receives():  # type: ignore[attr-defined]
            if answer.DESCRIPTOR.name == "CommandAuthChallenge":
                return answer
    raise AssertionError("no challenge came")


@pytest.mark.parametrize(
    ("is_known", "size", "is_closed"),
    [
        (False, MAX_STRANGER_FRAME_BYTES, True),
        (False, MAX_STRANGER_FRAME_BYTES - 4, False),
        (True, MAX_STRANGER_FRAME_BYTES, False),
    ],
)
async def test_a_stranger_sends_no_large_frame(
    guarded: Server, *, is_known: bool, size: int, is_closed: bool
) -> None:
    """Its beginning would be memory, which whoever connects could have."""
    client = guarded.open()
    if is_known:
        await client.asks(connect(b"me:1000"))
    client.cnx.data_received(struct.pack(">II", size, 10))
    assert client.is_closed is is_closed


async def test_without_authentication_nobody_is_a_stranger(server: Server) -> None:
    client = server.open()
    client.cnx.data_received(struct.pack(">II", MAX_STRANGER_FRAME_BYTES + 1, 10))
    assert not client.is_closed
