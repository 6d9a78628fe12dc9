"""Checks of rights before a command is served.

Handlers name the action that stands in the table of commands, and what it is about. Without
authorization nothing is asked.

Source: ServerCnx.isTopicOperationAllowed, isNamespaceOperationAllowed in Pulsar's broker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_py.common.errors import AuthorizationError
from pulsar_py.server.security.authorization import AccessTarget, Caller

if TYPE_CHECKING:
    from pulsar_py.server.handlers.command_connection import CommandConnection
    from pulsar_py.server.security.actions import Action


def rights_version(cnx: CommandConnection) -> int:
    """A number that grows when rights change; whoever awaits between check and act compares it."""
    revoking = cnx.connections.revoking
    return 0 if revoking is None else revoking.changes_count


async def authorize(
    cnx: CommandConnection, action: Action, target: AccessTarget, refusal: str
) -> None:
    """Return if the client may do it.

    Raises:
        AuthorizationError: It may not; the text is `refusal`.
        MetadataError: Nobody can tell.
    """
    authorization = cnx.connections.authorization
    if not authorization.is_enabled:
        return
    caller = Caller(cnx.role, cnx.original_principal)
    if not await authorization.allows(caller, action, target):
        cnx.connections.audit.authorization_refused(
            caller,
            address=cnx.peer.remote_address,
            action=action.description,
            resource=str(target),
        )
        raise AuthorizationError(refusal)
