from __future__ import annotations

import base64

import jwt
import pytest

from pulsar_py.common.token_end import token_end

KEY = bytes(range(32))


@pytest.mark.parametrize("claims", [{"exp": 1700}, {"exp": 1700, "sub": "mé" * 9}, {"exp": 1700.5}])
def test_the_end_is_what_the_token_says(claims: dict[str, object]) -> None:
    assert token_end(jwt.encode(claims, KEY, "HS256")) == claims["exp"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "secret",
        "a.b",
        "a.!!!.c",
        jwt.encode({"sub": "me"}, KEY, "HS256"),
        *(
            f"a.{base64.urlsafe_b64encode(each).decode().rstrip('=')}.c"
            for each in (b"[]", b"7", b'{"exp": "soon"}', b'{"exp": null}', b"\xff")
        ),
    ],
)
def test_what_has_no_end_or_is_no_token(text: str) -> None:
    assert token_end(text) is None
