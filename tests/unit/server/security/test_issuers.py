"""issuers: when keys are fetched, shared, kept and given up; what an issuer has to answer."""

from __future__ import annotations

import asyncio
import functools
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from pulsar_py.common.errors import AuthenticationError
from pulsar_py.common.loops.tasks import TaskOwner
from pulsar_py.server.security.issuer_keys import IssuerKey
from pulsar_py.server.security.issuers import IssuerFetcher, Issuers, IssuerTimes
from pulsar_py.testing.clock import VirtualClock, run_virtual
from pulsar_py.testing.network import run_simulated
from tests.http_server import Answer
from tests.token_issuer import TokenIssuer

URL = "https://issuer.example"
KEY = IssuerKey(None, ("ES256",))
TIMES = IssuerTimes(refresh_seconds=100, expiration_seconds=200, miss_seconds=30, max_issuers=2)


class Source:
    """Gives the ids in `ids`, after a second; fails while `error` is set."""

    def __init__(self) -> None:
        self.ids = ["a"]
        self.error = ""
        self.asked: list[str] = []

    async def fetch(self, issuer: str) -> dict[str, IssuerKey]:
        self.asked.append(issuer)
        await asyncio.sleep(1)
        if self.error:
            raise AuthenticationError(self.error)
        return dict.fromkeys(self.ids, KEY)


def in_virtual_time(
    work: Callable[[Source, Issuers], Awaitable[None]],
) -> Callable[[], None]:
    async def run() -> None:
        source = Source()
        issuers = Issuers(source.fetch, TIMES, VirtualClock())
        await work(source, issuers)
        await issuers.close()

    @functools.wraps(work)
    def test() -> None:
        run_virtual(run())

    del test.__wrapped__  # pytest would look for fixtures of its arguments
    return test


async def refused(issuers: Issuers, key_id: str = "a", url: str = URL) -> str:
    with pytest.raises(AuthenticationError) as caught:
        await issuers.key(url, key_id)
    return str(caught.value)


@in_virtual_time
async def test_many_at_once_share_a_fetch(source: Source, issuers: Issuers) -> None:
    found = await asyncio.gather(*(issuers.key(URL, "a") for _ in range(50)))
    assert found == [KEY] * 50
    assert source.asked == [URL]


@in_virtual_time
async def test_one_that_is_cut_off_does_not_end_it(source: Source, issuers: Issuers) -> None:
    tasks = TaskOwner("test")
    first = tasks.spawn(issuers.key(URL, "a"), "first")
    second = tasks.spawn(issuers.key(URL, "a"), "second")
    await asyncio.sleep(0.5)
    first.cancel()
    assert await second == KEY
    assert len(source.asked) == 1


@in_virtual_time
async def test_old_keys_are_fetched_anew_in_the_background(
    source: Source, issuers: Issuers
) -> None:
    await issuers.key(URL, "a")
    source.ids = ["b"]
    await asyncio.sleep(101)
    before = asyncio.get_running_loop().time()
    await issuers.key(URL, "a")
    assert asyncio.get_running_loop().time() == before  # nobody waits for it
    await asyncio.sleep(2)
    assert await issuers.key(URL, "b") == KEY
    assert "no key 'a'" in await refused(issuers)
    assert issuers.has_dropped(URL, "a", KEY)
    assert not issuers.has_dropped(URL, "b", KEY)
    assert not issuers.has_dropped("https://never.asked", "a", KEY)


@in_virtual_time
async def test_keys_of_an_issuer_that_is_away_count_until_they_expire(
    source: Source, issuers: Issuers
) -> None:
    await issuers.key(URL, "a")
    source.error = "away"
    await asyncio.sleep(195)
    assert await issuers.key(URL, "a") == KEY
    await asyncio.sleep(10)
    assert "away" in await refused(issuers)
    source.error = ""
    await asyncio.sleep(2)
    assert await issuers.key(URL, "a") == KEY


@in_virtual_time
async def test_an_unknown_id_fetches_at_most_once_a_period(
    source: Source, issuers: Issuers
) -> None:
    await issuers.key(URL, "a")
    for number in range(100):  # within 30 s of the first fetch
        await refused(issuers, f"invented-{number}")
    assert len(source.asked) == 1
    source.ids = ["a", "b"]
    await asyncio.sleep(30)
    found = await asyncio.gather(*(issuers.key(URL, "b") for _ in range(10)))
    assert found == [KEY] * 10
    assert len(source.asked) == 2


@in_virtual_time
async def test_a_failed_fetch_is_tried_again_after_a_second(
    source: Source, issuers: Issuers
) -> None:
    source.error = "away"
    for _ in range(20):
        assert "away" in await refused(issuers)
    assert len(source.asked) == 1
    await asyncio.sleep(1)
    assert "away" in await refused(issuers)
    assert len(source.asked) == 2


@in_virtual_time
async def test_the_issuer_that_was_not_used_for_longest_makes_room(
    source: Source, issuers: Issuers
) -> None:
    for name in ("x", "y", "x", "z", "x", "y"):
        await issuers.key(name, "a")
    assert source.asked == ["x", "y", "z", "y"]


# --- what an issuer answers ---------------------------------------------------------------------


def fetched(change: Callable[[TokenIssuer], None], **more: Any) -> list[str] | str:
    """Ids of the keys that an issuer has after a change, or why there are none."""

    async def run() -> list[str] | str:
        async with TokenIssuer().running() as issuer:
            assert isinstance(issuer, TokenIssuer)
            change(issuer)
            options = {"needs_https": False, "connect_seconds": 2.0, "read_seconds": 3.0, **more}
            fetch = IssuerFetcher(trust_path="", **options)
            try:
                return list(await fetch(issuer.url))
            except AuthenticationError as error:
                return str(error)

    return run_simulated(run())


def test_keys_are_where_the_issuer_says() -> None:
    assert fetched(lambda _: None) == ["one"]


@pytest.mark.parametrize(
    ("discovery", "text"),
    [
        ({"issuer": "http://other"}, "is of the issuer 'http://other'"),
        ({"issuer": None}, "is of the issuer None"),
        ({"jwks_uri": None}, "no jwks_uri"),
        ({"jwks_uri": "file:///etc/passwd"}, "no jwks_uri"),
        ({"jwks_uri": ["http://x"]}, "no jwks_uri"),
        ({"jwks_uri": "http://localhost:1/keys"}, "localhost:1"),
    ],
)
def test_a_discovery_document_that_is_wrong(discovery: dict[str, Any], text: str) -> None:
    assert text in fetched(lambda issuer: issuer.discovery.update(discovery))


def test_keys_in_clear_text_are_refused_unless_that_is_allowed() -> None:
    assert "expected https" in fetched(lambda _: None, needs_https=True)


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (Answer(500), "HTTP status 500"),
        (Answer(302, headers={"Location": "http://localhost:1/"}), "HTTP status 302"),
        (Answer(200, b"no json"), "not JSON"),
        (Answer(200, b"[]"), "is of the issuer None"),
        (Answer(200, b"x" * (1024 * 1024 + 1)), "the limit"),
        (Answer(is_silent=True), "no answer in 5.0 s"),
        (Answer(raw=b"nonsense\r\n\r\n"), "localhost"),
    ],
)
def test_an_issuer_that_answers_otherwise(answer: Answer, text: str) -> None:
    assert text in fetched(lambda issuer: setattr(issuer, "answer", lambda _: answer))


def test_keys_that_are_none() -> None:
    def change(issuer: TokenIssuer) -> None:
        respond = issuer.respond
        issuer.answer = lambda asked: (
            Answer(200, json.dumps({"keys": 1}).encode())
            if asked.target == "/keys"
            else respond(asked)
        )

    assert "expected a JSON object" in fetched(change)
