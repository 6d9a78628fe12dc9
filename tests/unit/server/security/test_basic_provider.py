"""basic_provider: files of users, and passwords that are right for some seconds."""

from __future__ import annotations

import asyncio
import base64
import threading
from pathlib import Path

import pytest

from pulsar_py.common.errors import AuthenticationError
from pulsar_py.common.loops.clock import SystemClock
from pulsar_py.server.security import basic_provider
from pulsar_py.server.security.authentication import Authenticated, HttpCredentials
from pulsar_py.server.security.basic_provider import BasicProvider, parse_users
from pulsar_py.server.security.peer import Peer
from pulsar_py.testing.clock import VirtualClock

APR1 = "$apr1$Wm1x2y3z$zRgAqw8M6CP9jSyFh65sz/"
BCRYPT = "$2y$04$" + 53 * "a"
SOURCE = "data:;base64," + base64.b64encode(f"me:{APR1}".encode()).decode()


def test_users_and_their_hashes() -> None:
    text = f"# people\nme:{APR1}\n\nyou:abNANd1rDfiNc\nbc:{BCRYPT}\n"
    assert parse_users(text.encode()) == {"me": APR1, "you": "abNANd1rDfiNc", "bc": BCRYPT}


@pytest.mark.parametrize(
    "line",
    [
        "me",
        "me:",
        ":abNANd1rDfiNc",
        "me:secret",
        "me:{SHA}x",
        "me:$2y$04$short",
        "me:$2y$99$" + 53 * "a",
        "me:$apr1$salt$short",
        "me:$apr1$" + 31 * "a",
    ],
)
def test_a_line_without_a_hash_is_named(line: str) -> None:
    with pytest.raises(ValueError, match=r"^line 1: "):
        parse_users(line.encode())


async def test_users_prove_themselves() -> None:
    provider = BasicProvider(SOURCE, SystemClock())
    assert await provider.authenticate(b"me:secret") == Authenticated("me")
    assert await provider.authenticate(b"me:secret") == Authenticated("me")
    for wrong in (b"me:wrong", b"you:secret", b"me", b"me:" + bytes(2000), b"me:\0"):
        with pytest.raises(AuthenticationError):
            await provider.authenticate(wrong)


async def test_a_user_loses_his_force_with_his_line(tmp_path: Path) -> None:
    path, clock = tmp_path / "users", VirtualClock()
    path.write_text(f"me:{APR1}\n")
    found = await BasicProvider(str(path), clock).authenticate(b"me:secret")
    assert found.is_revoked is not None
    path.write_text(f"# the same\nme:{APR1}\n")
    clock.jump(1)
    assert not found.is_revoked()
    path.write_text(f"you:{APR1}\n")
    clock.jump(1)
    assert found.is_revoked()


class LaterClock(SystemClock):
    """One that may be put forward."""

    later_seconds = 0.0

    def monotonic_seconds(self) -> float:
        return super().monotonic_seconds() + self.later_seconds


class Counting:
    """Stands in for the hashing of passwords, in its threads."""

    def __init__(self, right: str) -> None:
        self.right = right
        self.hashes: list[str] = []
        self.most_at_once = 0
        self._now = 0
        self._lock = threading.Lock()

    def __call__(self, password: str, password_hash: str) -> bool:
        with self._lock:
            self.hashes.append(password_hash)
            self._now += 1
            self.most_at_once = max(self.most_at_once, self._now)
        threading.Event().wait(0.002)
        with self._lock:
            self._now -= 1
        return password == self.right


@pytest.mark.parametrize("users", [f"me:{APR1}", ""])
async def test_an_unknown_user_is_as_much_work_as_a_known_one(
    users: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = "data:;base64," + base64.b64encode(users.encode()).decode()
    provider = BasicProvider(source, SystemClock())
    counting = Counting("secret")
    monkeypatch.setattr(basic_provider, "is_password", counting)
    for _ in range(2):  # and is not remembered, though the password is somebody's
        with pytest.raises(AuthenticationError, match="invalid user or password"):
            await provider.authenticate(b"nobody:secret")
    assert len(counting.hashes) == 2
    assert all(each.startswith("$apr1$") for each in counting.hashes)


async def test_in_a_file_of_two_kinds_unknown_users_are_of_both(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    users = f"slow:{BCRYPT}\nquick:{APR1}\n"
    provider = BasicProvider(
        "data:;base64," + base64.b64encode(users.encode()).decode(), SystemClock()
    )
    counting = Counting("secret")
    monkeypatch.setattr(basic_provider, "is_password", counting)
    for name in [f"nobody{number}" for number in range(64)] * 2:
        with pytest.raises(AuthenticationError):
            await provider.authenticate(f"{name}:secret".encode())
    first, second = counting.hashes[:64], counting.hashes[64:]
    assert first == second  # each name is as quick or slow as before
    assert set(first) == {BCRYPT, APR1}


async def test_what_was_right_is_not_hashed_again_for_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = LaterClock()
    provider = BasicProvider(SOURCE, clock)
    counting = Counting("secret")
    monkeypatch.setattr(basic_provider, "is_password", counting)
    for _ in range(3):
        await provider.authenticate(b"me:secret")
    assert len(counting.hashes) == 1
    with pytest.raises(AuthenticationError):
        await provider.authenticate(b"me:wrong")
    clock.later_seconds = 10
    await provider.authenticate(b"me:secret")
    assert len(counting.hashes) == 3


async def test_few_passwords_are_worked_on_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    provider = BasicProvider(SOURCE, SystemClock())
    counting = Counting("secret")
    monkeypatch.setattr(basic_provider, "is_password", counting)
    tries = [provider.authenticate(b"me:%d" % each) for each in range(20)]
    answers = await asyncio.gather(*tries, return_exceptions=True)
    assert all(isinstance(each, AuthenticationError) for each in answers)
    assert len(counting.hashes) == 20
    assert counting.most_at_once <= 2


async def test_headers_that_are_none_of_ours() -> None:
    provider = BasicProvider(SOURCE, SystemClock())
    assert await provider.authenticate_http(HttpCredentials({}, Peer())) is None
    bearer = HttpCredentials({"authorization": "Bearer x"}, Peer())
    assert await provider.authenticate_http(bearer) is None
    with pytest.raises(AuthenticationError, match="not base64"):
        await provider.authenticate_http(HttpCredentials({"authorization": "Basic %"}, Peer()))
