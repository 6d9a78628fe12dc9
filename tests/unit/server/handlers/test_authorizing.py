"""authorizing: refusals have the text that clients know."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pulsar_py.common.errors import AuthorizationError
from pulsar_py.server.handlers.authorizing import authorize, rights_version
from pulsar_py.server.security.actions import Action
from pulsar_py.server.security.audit import Audit
from pulsar_py.server.security.authorization import AccessTarget, Caller, Unrestricted
from pulsar_py.server.security.peer import Peer
from pulsar_py.testing.clock import VirtualClock


class Only:
    """Rules by which one role may do everything."""

    is_enabled = True

    def __init__(self, role: str) -> None:
        self._role = role

    def is_valid(self, caller: Caller, *, may_name_itself: bool) -> bool:
        del caller, may_name_itself
        return True

    async def allows(self, caller: Caller, action: Action, target: AccessTarget) -> bool:
        del action, target
        return caller.role == self._role


def cnx_of(role: str | None, authorization: object) -> Any:  # Any: the few members that are read
    connections = SimpleNamespace(
        authorization=authorization, revoking=None, audit=Audit(VirtualClock())
    )
    return SimpleNamespace(role=role, original_principal=None, connections=connections, peer=Peer())


async def test_who_may_not_gets_the_text() -> None:
    target = AccessTarget(tenant="t")
    await authorize(cnx_of("me", Only("me")), Action.PRODUCE, target, "no")
    with pytest.raises(AuthorizationError, match=r"^no$"):
        await authorize(cnx_of("you", Only("me")), Action.PRODUCE, target, "no")


async def test_a_refusal_is_told_to_the_audit() -> None:
    cnx = cnx_of("you", Only("me"))
    with pytest.raises(AuthorizationError):
        await authorize(cnx, Action.PRODUCE, AccessTarget(tenant="t"), "no")
    assert cnx.connections.audit.statistics().authorization_refusals_count == 1


async def test_while_it_is_off_nobody_is_asked() -> None:
    cnx = cnx_of(None, Unrestricted())
    await authorize(cnx, Action.PRODUCE, AccessTarget(), "no")
    assert rights_version(cnx) == 0
