"""ending_credentials: whom a look at credentials closes, asks, or leaves alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from pulsar_py.server.connection.ending_credentials import (
    LOOK_SECONDS,
    CredentialsHolder,
    EndingCredentials,
)
from pulsar_py.server.security.authentication import Authenticated
from pulsar_py.testing.clock import START_WALL_MILLIS, VirtualClock

ANSWER_SECONDS = 10.0
EXPIRED = Authenticated("me", START_WALL_MILLIS)
LASTING = Authenticated("me")


@dataclass(eq=False)
class Holder:
    """A connection that writes down what happens to it."""

    credentials: Authenticated | None = None
    proxy_credentials: Authenticated | None = None
    original_principal: str | None = None
    refreshes_original: bool = False
    is_handshake_done: bool = True
    can_refresh: bool = True
    is_connected: bool = True
    challenges_count: int = 0
    reason: str | None = None
    state: Any = field(default_factory=lambda: SimpleNamespace(is_challenge_pending=False))

    @property
    def handshake(self) -> Any:
        return SimpleNamespace(supports_auth_refresh=self.can_refresh)

    def send_refresh_challenge(self) -> None:
        self.challenges_count += 1
        self.state.is_challenge_pending = True

    def refuse(self, reason: str) -> None:
        self.reason = reason
        self.is_connected = False


@pytest.fixture
async def watched() -> AsyncIterator[list[CredentialsHolder]]:
    """The connections that are open; looked at from now on."""
    found: list[CredentialsHolder] = []
    ending = EndingCredentials(lambda: found, VirtualClock(), answer_seconds=ANSWER_SECONDS)
    ending.start()
    yield found
    ending.close()


@pytest.mark.parametrize(
    ("holder", "reason"),
    [
        (Holder(None), None),
        (Holder(LASTING), None),
        (Holder(Authenticated("me", is_revoked=lambda: False)), None),
        (Holder(Authenticated("me", is_revoked=lambda: True)), "revoked"),
        (Holder(LASTING, Authenticated("proxy", is_revoked=lambda: True)), "revoked"),
        (Holder(EXPIRED, can_refresh=False), "can't refresh"),
        (Holder(EXPIRED, original_principal="other"), "can't refresh"),
        (Holder(EXPIRED, can_refresh=False, is_handshake_done=False), None),
    ],
)
async def test_who_is_closed_within_a_second(
    watched: list[CredentialsHolder], holder: Holder, reason: str | None
) -> None:
    watched.append(holder)
    await asyncio.sleep(1)
    assert holder.challenges_count == 0
    assert (holder.reason is None) == (reason is None)
    assert reason is None or reason in str(holder.reason)


async def test_who_can_answer_is_asked_once_and_has_time_for_it(
    watched: list[CredentialsHolder],
) -> None:
    holder = Holder(EXPIRED, original_principal="other", refreshes_original=True)
    watched.append(holder)
    await asyncio.sleep(ANSWER_SECONDS)
    assert (holder.challenges_count, holder.reason) == (1, None)
    await asyncio.sleep(2 * LOOK_SECONDS)
    assert "not refreshed" in str(holder.reason)


async def test_who_answers_stays_and_is_asked_again_in_time(
    watched: list[CredentialsHolder],
) -> None:
    holder = Holder(EXPIRED)
    watched.append(holder)
    await asyncio.sleep(1)
    holder.credentials = Authenticated("me", START_WALL_MILLIS + 60_000)
    holder.state.is_challenge_pending = False
    await asyncio.sleep(58)
    assert (holder.challenges_count, holder.reason) == (1, None)
    await asyncio.sleep(2)
    assert (holder.challenges_count, holder.reason) == (2, None)
    await asyncio.sleep(ANSWER_SECONDS - 2)
    assert holder.reason is None
