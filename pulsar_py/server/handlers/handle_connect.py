"""Handlers of CONNECT, AUTH_RESPONSE, PING and PONG.

CONNECT is answered with CONNECTED at once while authentication is off. Otherwise its data, and that
of each AUTH_RESPONSE, is passed to the method's state until that returns a role. Credentials are
refreshed later in the same way: a changed role closes the connection. Of those that come while
others are checked the newest count alone, so that a flood of them costs one check at a time. A
proxy names the client that it acts for; its word counts, or the client's own credentials if the
settings ask for them. A connection within the process has a caller whom the process vouches for,
and needs no credentials.

Source: ServerCnx.handleConnect, handleAuthResponse in Pulsar's broker; PIP-55.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from pulsar_py.common.errors import (
    AuthenticationError,
    AuthorizationError,
    RemoteProtocolError,
    ServiceError,
)
from pulsar_py.proto.PulsarApi_pb2 import (
    AuthMethod,
    CommandAuthResponse,
    CommandConnect,
    CommandPing,
    CommandPong,
)
from pulsar_py.server.security.authentication import (
    REFRESH_CHALLENGE,
    Authenticated,
    Challenge,
    ClientCredentials,
)
from pulsar_py.server.security.authorization import Caller
from pulsar_py.wire import commands
from pulsar_py.wire.connection_state import Handshake, broker_feature_flags

if TYPE_CHECKING:
    from pulsar_py.server.handlers.command_connection import CommandConnection


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
    if cnx.vouched_for is not None:
        cnx.role = cnx.vouched_for.role
        cnx.original_principal = cnx.vouched_for.original_principal
        _finish(cnx)
        return
    if not authenticators.is_enabled:
        _send_connected(cnx)
        return
    cnx.auth_method_name = _method_name_of(command)
    credentials = ClientCredentials(method_name=cnx.auth_method_name, peer=cnx.peer)
    try:
        cnx.auth_state = authenticators.state_for(credentials)
    except ServiceError as error:
        _refuse_credentials(cnx, error)
        return
    if cnx.auth_state is None:
        cnx.role = authenticators.anonymous_role
        _finish(cnx)
        return
    cnx.spawn(_authenticate_first(cnx, command), "authenticate")


def _method_name_of(command: CommandConnect) -> str:
    """The method's name; clients of old protocols say it by a number."""
    if command.HasField("auth_method_name") or not command.HasField("auth_method"):
        return command.auth_method_name
    return AuthMethod.Name(command.auth_method).removeprefix("AuthMethod").lower()


async def _authenticate_first(cnx: CommandConnection, command: CommandConnect) -> None:
    """Check what CONNECT brought: the client's credentials, and those that a proxy passes on."""
    answer = await _checked(cnx, command.auth_data)
    if isinstance(answer, Challenge):
        send_challenge(cnx, answer.auth_data)
        return
    if answer is None:
        return
    cnx.role = answer.role
    cnx.credentials = answer
    authenticators = cnx.connections.authenticators
    has_original = command.HasField("original_principal") or command.HasField("original_auth_data")
    if authenticators.is_original_authenticated and has_original:
        if not await _authenticate_original(cnx, command):
            return
    elif command.HasField("original_principal"):
        # A proxy's own credentials can't be refreshed through its client's connection.
        cnx.refreshes_original = False
    _finish(cnx)


async def _authenticate_original(cnx: CommandConnection, command: CommandConnect) -> bool:
    """Check the credentials of a proxy's client, whose role counts and not what was said of it."""
    peer = replace(cnx.peer, certificate=None)  # that is the proxy's
    credentials = ClientCredentials(method_name=command.original_auth_method, peer=peer)
    try:
        state = cnx.connections.authenticators.state_for(credentials)
    except ServiceError as error:
        _refuse_credentials(cnx, error)
        return False
    if state is None:
        cnx.original_principal = cnx.connections.authenticators.anonymous_role
        return True
    cnx.auth_state = state
    answer = await _checked(cnx, command.original_auth_data.encode(), command.original_auth_method)
    if not isinstance(answer, Authenticated):
        if answer is not None:
            _refuse_credentials(cnx, AuthenticationError("a proxy can't pass on challenges"))
        return False
    cnx.original_principal = answer.role
    cnx.refreshes_original = True
    cnx.proxy_credentials = cnx.credentials
    cnx.auth_method_name = command.original_auth_method
    cnx.credentials = answer
    return True


def handle_auth_response(cnx: CommandConnection, command: CommandAuthResponse) -> None:
    """Go on with the handshake, or check refreshed credentials, asked for or not.

    Raises:
        RemoteProtocolError: Nobody authenticates here, or there is no data.
    """
    if cnx.auth_state is None or not command.response.HasField("auth_data"):
        raise RemoteProtocolError("AUTH_RESPONSE is not expected, or has no data")
    cnx.state.on_challenge_answered()
    is_checking = cnx.newest_auth_data is not None
    cnx.newest_auth_data = command.response.auth_data
    if not is_checking:
        cnx.spawn(_authenticate_newest(cnx), "authenticate")


async def _authenticate_newest(cnx: CommandConnection) -> None:
    """Check what came last, until nothing has come meanwhile."""
    while (auth_data := cnx.newest_auth_data) is not None and cnx.is_connected:
        await _authenticate_again(cnx, auth_data)
        if cnx.newest_auth_data is auth_data:
            cnx.newest_auth_data = None


async def _authenticate_again(cnx: CommandConnection, auth_data: bytes) -> None:
    answer = await _checked(cnx, auth_data)
    if isinstance(answer, Challenge):
        send_challenge(cnx, answer.auth_data)
        return
    if answer is None:
        return
    if cnx.is_handshake_done:
        before = cnx.original_principal if cnx.refreshes_original else cnx.role
        if answer.role is None or before != answer.role:
            cnx.refuse("the refreshed credentials are of another role")
            return
        cnx.credentials = answer
        cnx.on_credentials_refreshed()
        return
    cnx.role = answer.role
    cnx.credentials = answer
    _finish(cnx)


async def _checked(
    cnx: CommandConnection, auth_data: bytes, method_name: str | None = None
) -> Authenticated | Challenge | None:
    """The answer of the connection's method; None if there is nobody to go on with.

    `method_name` is that of a proxy's client, whose credentials are not the connection's yet.
    """
    assert cnx.auth_state is not None
    counts = cnx.connections.authenticators.counts
    method_name = method_name or cnx.auth_method_name
    try:
        answer = await cnx.auth_state.authenticate(auth_data)
    except Exception as error:  # noqa: BLE001 - whatever fails must not let the client in
        counts.failed(method_name, error)
        _refuse_credentials(cnx, error)
        return None
    if isinstance(answer, Authenticated):
        counts.succeeded(method_name, answer)
    return answer if cnx.is_connected else None


def _finish(cnx: CommandConnection) -> None:
    """End the handshake, unless the client names a role that it may not act for."""
    caller = Caller(cnx.role, cnx.original_principal)
    if not cnx.connections.authorization.is_valid(caller, may_name_itself=False):
        cnx.connections.audit.authorization_refused(
            caller, address=cnx.peer.remote_address, action="connect", resource="the broker"
        )
        _refuse(cnx, AuthorizationError("Invalid roles."))
        return
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
    cnx.connections.handshakes_count += 1
    settings = cnx.connections.settings
    cnx.on_connected()
    cnx.state.on_connected(takes_auth_response=cnx.auth_state is not None)
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


def _refuse_credentials(cnx: CommandConnection, error: Exception) -> None:
    """Refuse credentials: the log has the reason, whoever sent them learns nothing."""
    cnx.connections.audit.authentication_refused(
        address=cnx.peer.remote_address, method_name=cnx.auth_method_name, reason=str(error)
    )
    _refuse(cnx, AuthenticationError("Failed to authenticate"))


def _refuse(cnx: CommandConnection, error: ServiceError) -> None:
    if not cnx.is_connected:
        return
    cnx.connections.refused_handshakes_count += 1
    cnx.send(commands.error(commands.NO_REQUEST_ID, error.code, str(error)))
    cnx.refuse(str(error))
