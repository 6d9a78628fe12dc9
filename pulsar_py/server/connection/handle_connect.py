"""Handlers of CONNECT, AUTH_RESPONSE, PING and PONG.

CONNECT is answered with CONNECTED at once while authentication is off. Otherwise its data, and that
of each AUTH_RESPONSE, is passed to the method's state until that returns a role. Credentials are
refreshed later in the same way: a changed role closes the connection.

Source: ServerCnx.handleConnect, handleAuthResponse in Pulsar's broker; PIP-55.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_py.common.errors import AuthenticationError, ServiceError
from pulsar_py.proto.PulsarApi_pb2 import (
    CommandAuthResponse,
    CommandConnect,
    CommandPing,
    CommandPong,
)
from pulsar_py.server.security.authentication import (
    REFRESH_CHALLENGE,
    Authenticated,
    ClientCredentials,
)
from pulsar_py.wire import commands
from pulsar_py.wire.connection_state import Handshake, broker_feature_flags

if TYPE_CHECKING:
    from pulsar_py.server.connection.command_connection import CommandConnection


def handle_ping(cnx: CommandConnection, command: CommandPing) -> None:
    """Answer at once."""
    del command
    cnx.send(commands.pong())


def handle_pong(cnx: CommandConnection, command: CommandPong) -> None:
    """Do nothing: keep-alive counts any received byte as an answer."""
    del cnx, command


def handle_connect(cnx: CommandConnection, command: CommandConnect) -> None:
    """Begin the handshake; ends with CONNECTED, AUTH_CHALLENGE or ERROR."""
    cnx.state.on_connect()
    cnx.handshake = Handshake.from_connect(command)
    if command.HasField("original_principal"):
        cnx.original_principal = command.original_principal
    authenticators = cnx.connections.authenticators
    if not authenticators.is_enabled:
        _send_connected(cnx)
        return
    try:
        cnx.auth_state = authenticators.state_for(_credentials_of(cnx, command))
    except ServiceError as error:
        _refuse(cnx, error)
        return
    cnx.auth_method_name = command.auth_method_name
    if cnx.auth_state is None:
        cnx.role = authenticators.anonymous_role
        _send_connected(cnx)
        return
    cnx.spawn(_authenticate(cnx, command.auth_data), "authenticate")


def _credentials_of(cnx: CommandConnection, command: CommandConnect) -> ClientCredentials:
    has = command.HasField
    return ClientCredentials(
        method_name=command.auth_method_name,
        peer=cnx.peer,
        original_principal=cnx.original_principal,
        original_auth_data=(
            command.original_auth_data.encode() if has("original_auth_data") else None
        ),
        original_auth_method=command.original_auth_method if has("original_auth_method") else None,
    )


def handle_auth_response(cnx: CommandConnection, command: CommandAuthResponse) -> None:
    """Go on with the handshake, or check refreshed credentials."""
    cnx.state.on_challenge_answered()
    cnx.spawn(_authenticate(cnx, command.response.auth_data), "authenticate")


async def _authenticate(cnx: CommandConnection, auth_data: bytes) -> None:
    assert cnx.auth_state is not None
    try:
        answer = await cnx.auth_state.authenticate(auth_data)
    except Exception as error:  # noqa: BLE001 - whatever fails must not let the client in
        _refuse(cnx, AuthenticationError(str(error)))
        return
    if not cnx.is_connected:
        return
    if not isinstance(answer, Authenticated):
        send_challenge(cnx, answer.auth_data)
        return
    if cnx.is_handshake_done and cnx.role != answer.role:
        _refuse(cnx, AuthenticationError("the refreshed credentials are of another role"))
        return
    cnx.role = answer.role
    cnx.credentials_expire_at_millis = answer.expires_at_millis
    if not cnx.is_handshake_done:
        _send_connected(cnx)


def send_challenge(cnx: CommandConnection, auth_data: bytes = REFRESH_CHALLENGE) -> None:
    """Send AUTH_CHALLENGE."""
    cnx.state.on_challenge_sent()
    cnx.send(
        commands.auth_challenge(
            cnx.auth_method_name,
            auth_data,
            server_version=cnx.connections.settings.server_version,
            protocol_version=cnx.protocol_version,
        )
    )


def _send_connected(cnx: CommandConnection) -> None:
    settings = cnx.connections.settings
    cnx.state.on_connected()
    cnx.send(
        commands.connected(
            settings.server_version,
            cnx.protocol_version,
            settings.max_message_bytes,
            broker_feature_flags(
                is_topic_list_watcher_enabled=settings.is_topic_list_watcher_enabled
            ),
        )
    )


def _refuse(cnx: CommandConnection, error: ServiceError) -> None:
    cnx.send(commands.error(commands.NO_REQUEST_ID, error.code, str(error)))
    cnx.refuse(str(error))
