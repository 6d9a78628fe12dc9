"""What goes to the broker by each way, and what goes wrong with suppliers."""

from __future__ import annotations

from collections.abc import Awaitable

import pytest

from pulsar_py.client.security.authentication import (
    AUTH_REFRESH_CHALLENGE,
    Authentication,
    AuthenticationBasic,
    AuthenticationTLS,
    AuthenticationToken,
    NoAuthentication,
)
from pulsar_py.client.shared.retries import is_retriable
from pulsar_py.common.errors import (
    AuthenticationDataError,
    InvalidConfigurationError,
    UnusableCredentialsError,
)


async def test_a_fixed_token() -> None:
    token = AuthenticationToken("abc")

    assert token.method_name == "token"
    assert await token.authenticate() == b"abc"
    assert await token.http_headers() == {"Authorization": "Bearer abc"}
    assert "abc" not in repr(token)


async def test_a_supplier_is_asked_each_time() -> None:
    tokens = iter(["one", b"two\n", "three"])
    token = AuthenticationToken(lambda: next(tokens))

    assert await token.authenticate() == b"one"
    assert await token.authenticate(AUTH_REFRESH_CHALLENGE) == b"two"
    assert await token.http_headers() == {"Authorization": "Bearer three"}


async def test_a_supplier_may_be_a_coroutine() -> None:
    async def supply() -> str:
        return "later"

    assert await AuthenticationToken(supply).authenticate() == b"later"


async def test_a_supplier_that_fails_is_named() -> None:
    def fail() -> str:
        raise OSError("vault is sealed")

    with pytest.raises(AuthenticationDataError, match=r"token credentials: .*vault is sealed"):
        await AuthenticationToken(fail).authenticate()
    with pytest.raises(UnusableCredentialsError, match="expected a str, got int"):
        await AuthenticationToken(lambda: 7).authenticate()  # type: ignore[arg-type, return-value]


@pytest.mark.parametrize(
    ("problem", "kind"),
    [
        (FileNotFoundError("no token here"), UnusableCredentialsError),
        (KeyError("TOKEN"), UnusableCredentialsError),
        (ConnectionRefusedError("the vault"), AuthenticationDataError),
        (TimeoutError("the vault"), AuthenticationDataError),
    ],
)
async def test_a_retry_may_mend_an_outage_but_not_a_mistake(
    problem: Exception, kind: type[Exception]
) -> None:
    def fail() -> str:
        raise problem

    with pytest.raises(AuthenticationDataError) as raised:
        await AuthenticationToken(fail).authenticate()
    assert type(raised.value) is kind
    assert is_retriable(raised.value) is (kind is AuthenticationDataError)


def test_a_token_has_to_be_one() -> None:
    with pytest.raises(InvalidConfigurationError, match="got NoneType"):
        AuthenticationToken(None)  # type: ignore[arg-type]


async def test_user_and_password() -> None:
    for basic in (
        AuthenticationBasic("user", "pässword"),
        AuthenticationBasic(auth_params_string='{"username": "user", "password": "pässword"}'),
    ):
        assert basic.method_name == "basic"
        assert await basic.authenticate() == "user:pässword".encode()
        assert (await basic.http_headers())["Authorization"].startswith("Basic dXNlcjpw")
        assert "pässword" not in repr(basic)


def test_the_method_of_basic_can_be_named() -> None:
    assert AuthenticationBasic("u", "p", "oms3.0").method_name == "oms3.0"
    text = '{"username": "u", "password": "p", "method": "m"}'
    assert AuthenticationBasic(auth_params_string=text).method_name == "m"


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"username": "secret", "password": 1}'])
def test_parameters_that_make_no_sense_are_named_but_not_quoted(text: str) -> None:
    with pytest.raises(InvalidConfigurationError) as info:
        AuthenticationBasic(auth_params_string=text)
    assert "secret" not in str(info.value)


async def test_a_certificate_needs_no_data() -> None:
    tls = AuthenticationTLS("cert.pem", "key.pem")

    assert tls.method_name == "tls"
    assert tls.tls_certificate_paths == ("cert.pem", "key.pem")
    assert await tls.authenticate() == b""
    assert await tls.http_headers() == {}
    with pytest.raises(InvalidConfigurationError, match="private_key_path"):
        AuthenticationTLS("cert.pem", "")


async def test_without_authentication_nothing_is_said() -> None:
    nobody = NoAuthentication()

    assert (nobody.method_name, await nobody.authenticate()) == ("none", b"")
    assert nobody.tls_certificate_paths is None
    await nobody.close()


async def test_own_ways_may_be_plain_or_coroutines_and_answer_challenges() -> None:
    class Mine(Authentication):
        method_name = "mine"

        def auth_data(self) -> bytes:
            return b"first"

        async def answer_challenge(self, challenge: bytes) -> bytes:
            return b"answer to " + challenge

    assert await Mine().authenticate() == b"first"
    assert await Mine().authenticate(b"why?") == b"answer to why?"


async def test_data_has_to_be_bytes() -> None:
    class Wrong(Authentication):
        method_name = "mine"

        def auth_data(self) -> bytes | Awaitable[bytes]:
            return "text"  # type: ignore[return-value]

    with pytest.raises(AuthenticationDataError, match="mine credentials: expected bytes, got str"):
        await Wrong().authenticate()


@pytest.mark.parametrize(
    ("token", "text"), [("", "empty"), (" \n", "empty"), ("file:///token", "URL of a file")]
)
def test_what_can_be_no_token_is_refused(token: str, text: str) -> None:
    with pytest.raises(InvalidConfigurationError, match=f"^token: .*{text}"):
        AuthenticationToken(token)
