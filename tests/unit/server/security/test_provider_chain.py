"""provider_chain: several providers of one method."""

from __future__ import annotations

import pytest

from pulsar_py.common.errors import AuthenticationError
from pulsar_py.server.security.authentication import (
    Authenticated,
    AuthenticationState,
    Challenge,
    ClientCredentials,
    ExpiredCredentialsError,
    HttpCredentials,
)
from pulsar_py.server.security.peer import Peer
from pulsar_py.server.security.provider_chain import ProviderChain

CREDENTIALS = ClientCredentials(method_name="token", peer=Peer())


class Fixed:
    """Takes one text; a challenge comes first if it has one."""

    method_name = "token"

    def __init__(self, good: bytes, challenge: bytes = b"", *, is_old: bool = False) -> None:
        self.good, self.challenge, self.is_old = good, challenge, is_old
        self.is_closed = False

    def new_state(self, credentials: ClientCredentials) -> AuthenticationState:
        del credentials
        return self

    async def authenticate(self, auth_data: bytes) -> Authenticated | Challenge:
        if auth_data == self.good:
            return Authenticated(self.good.decode())
        if self.challenge and auth_data == b"hello":
            return Challenge(self.challenge)
        raise ExpiredCredentialsError("old") if self.is_old else AuthenticationError("bad")

    async def authenticate_http(self, credentials: HttpCredentials) -> Authenticated | None:
        data = credentials.headers.get("authorization")
        if data is None:
            return None
        answer = await self.authenticate(data.encode())
        assert isinstance(answer, Authenticated)
        return answer

    async def close(self) -> None:
        self.is_closed = True


async def test_the_first_that_takes_them_decides() -> None:
    chain = ProviderChain([Fixed(b"a"), Fixed(b"b")])
    assert chain.method_name == "token"
    for data in (b"a", b"b"):
        assert await chain.new_state(CREDENTIALS).authenticate(data) == Authenticated(data.decode())
        headers = {"authorization": data.decode()}
        answer = await chain.authenticate_http(HttpCredentials(headers, Peer()))
        assert answer == Authenticated(data.decode())
    assert await chain.authenticate_http(HttpCredentials({}, Peer())) is None


async def test_what_none_takes_is_refused_with_all_reasons() -> None:
    chain = ProviderChain([Fixed(b"a"), Fixed(b"b")])
    with pytest.raises(AuthenticationError, match="bad; bad"):
        await chain.new_state(CREDENTIALS).authenticate(b"c")
    with pytest.raises(AuthenticationError, match="bad; bad"):
        await chain.authenticate_http(HttpCredentials({"authorization": "c"}, Peer()))
    old = ProviderChain([Fixed(b"a"), Fixed(b"b", is_old=True)])
    with pytest.raises(ExpiredCredentialsError):
        await old.new_state(CREDENTIALS).authenticate(b"c")


async def test_who_challenged_goes_on_alone() -> None:
    chain = ProviderChain([Fixed(b"a"), Fixed(b"b", b"who?"), Fixed(b"c")])
    state = chain.new_state(CREDENTIALS)
    assert await state.authenticate(b"hello") == Challenge(b"who?")
    with pytest.raises(AuthenticationError):
        await state.authenticate(b"c")
    assert await state.authenticate(b"hello") == Challenge(b"who?")
    assert await state.authenticate(b"b") == Authenticated("b")
    assert await state.authenticate(b"c") == Authenticated("c")


async def test_all_are_closed() -> None:
    several = [Fixed(b"a"), Fixed(b"b")]
    await ProviderChain(several).close()
    assert all(each.is_closed for each in several)
