"""A handshake without a connection: what is said, and how it ends."""

from __future__ import annotations

import asyncio
import importlib.metadata

import pytest

from pulsar_py.client.brokers.handshake import CLIENT_VERSION, ClientHandshake
from pulsar_py.client.security.authentication import Authentication, AuthenticationToken
from pulsar_py.common.errors import AuthenticationDataError, AuthenticationError, ConnectError
from pulsar_py.proto.PulsarApi_pb2 import BaseCommand
from pulsar_py.testing.clock import run_virtual
from pulsar_py.wire import commands
from pulsar_py.wire.connection_state import ConnectionState, Side
from pulsar_py.wire.framing import FrameDecoder
from tests.unit.client.consumer_parts import spawn


class Talk:
    """A handshake, and what it did."""

    def __init__(self, authentication: Authentication | None = None) -> None:
        self.sent: list[BaseCommand] = []
        self.closed: list[str] = []
        self.handshake = ClientHandshake(
            ConnectionState(Side.CLIENT),
            remote_address="broker:6650",
            authentication=authentication,
            proxy_to_broker="other:6650",
            send=self._send,
            close=self._close,
        )

    def _send(self, frame: bytes) -> None:
        (decoded,) = FrameDecoder(1000).decode(frame)
        self.sent.append(commands.read_command(decoded.command))

    def _close(self, reason: str) -> None:
        self.closed.append(reason)
        self.handshake.on_failed(ConnectError(reason))

    async def begin(self) -> asyncio.Task[None]:
        running = spawn(self.handshake.run())
        await asyncio.sleep(1)
        return running


def test_brokers_are_shown_the_installed_version() -> None:
    assert f"pulsar_py-v{importlib.metadata.version('pulsar_py')}" == CLIENT_VERSION


def test_it_ends_when_the_broker_takes_us() -> None:
    async def work() -> None:
        talk = Talk()
        running = await talk.begin()
        (connect,) = (each.connect for each in talk.sent)
        assert (connect.client_version, connect.auth_method_name) == (CLIENT_VERSION, "none")
        assert connect.proxy_to_broker_url == "other:6650"
        assert not running.done()
        talk.handshake.on_connected()
        await running
        talk.handshake.on_connected()
        talk.handshake.on_failed(ConnectError("closed later"))

    run_virtual(work())


def test_the_first_reason_for_which_it_fails_counts() -> None:
    async def work() -> None:
        talk = Talk()
        running = await talk.begin()
        talk.handshake.on_failed(AuthenticationError("bad token"))
        talk.handshake.on_failed(ConnectError("closed"))
        with pytest.raises(AuthenticationError, match="bad token") as raised:
            await running
        assert str(raised.value) == "bad token (the client has no authentication)"

    run_virtual(work())


def test_nothing_is_sent_if_the_connection_ends_while_credentials_are_fetched() -> None:
    async def slow() -> str:
        await asyncio.sleep(5)
        return "token"

    async def work() -> None:
        talk = Talk(AuthenticationToken(slow))
        running = await talk.begin()
        talk.handshake.on_failed(ConnectError("closed"))
        with pytest.raises(ConnectError, match="closed"):
            await running
        assert talk.sent == []

    run_virtual(work())


def test_challenges_are_answered_with_fresh_credentials() -> None:
    tokens = iter(["one", "two"])

    async def work() -> None:
        talk = Talk(AuthenticationToken(lambda: next(tokens)))
        running = await talk.begin()
        await talk.handshake.answer(b"PulsarAuthRefresh")
        talk.handshake.on_connected()
        await running
        connect, response = talk.sent
        assert connect.connect.auth_data == b"one"
        assert response.authResponse.response.auth_data == b"two"
        assert talk.closed == []

    run_virtual(work())


def test_without_fresh_credentials_the_connection_ends() -> None:
    tokens = iter(["one"])

    async def work() -> None:
        talk = Talk(AuthenticationToken(lambda: next(tokens, None)))
        running = await talk.begin()
        await talk.handshake.answer(b"PulsarAuthRefresh")
        with pytest.raises(AuthenticationDataError):
            await running
        (reason,) = talk.closed
        assert reason.startswith("no fresh credentials")

    run_virtual(work())


def test_without_authentication_a_challenge_ends_the_connection() -> None:
    async def work() -> None:
        talk = Talk()
        running = await talk.begin()
        await talk.handshake.answer(b"prove it")
        with pytest.raises(ConnectError, match="there is no authentication"):
            await running
        assert len(talk.sent) == 1

    run_virtual(work())
