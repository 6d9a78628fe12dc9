"""With the example of RFC 2831, section 4."""

from __future__ import annotations

import pytest

from pulsar_py.zookeeper.digest_md5 import DigestMd5Credentials, DigestMd5Exchange, SaslError

CHALLENGE = (
    b'realm="elwood.innosoft.com",nonce="OA6MG9tEQGm2hh",qop="auth",'
    b"algorithm=md5-sess,charset=utf-8"
)
ANSWER = (
    b'charset=utf-8,username="chris",realm="elwood.innosoft.com",nonce="OA6MG9tEQGm2hh",'
    b'nc=00000001,cnonce="OA6MHXh6VqTrRk",digest-uri="imap/elwood.innosoft.com",'
    b"response=d388dad90d4bbd760a152321f2143af7,qop=auth"
)
PROOF = b"rspauth=ea40f60335c427b5527b84dbabcdfffd"


def exchange(username: str = "chris") -> DigestMd5Exchange:
    credentials = DigestMd5Credentials(
        username=username, password="secret", service="imap", host="elwood.innosoft.com"
    )
    return DigestMd5Exchange(credentials, "OA6MHXh6VqTrRk")


def test_the_exchange_of_the_standard() -> None:
    chris = exchange()
    assert chris.answer(CHALLENGE) == ANSWER
    chris.check(PROOF)


def test_a_server_that_does_not_know_the_password_is_found_out() -> None:
    chris = exchange()
    with pytest.raises(SaslError, match="can't prove"):
        chris.check(b"rspauth=")
    chris.answer(CHALLENGE)
    with pytest.raises(SaslError, match="can't prove"):
        chris.check(b"rspauth=d388dad90d4bbd760a152321f2143af7")


@pytest.mark.parametrize(
    ("challenge", "wrong"),
    [
        (b"", "no nonce"),
        (b'nonce="x",algorithm=md5', "another algorithm"),
        (b'nonce="x",algorithm=md5-sess,qop="auth-conf,auth-int"', "authenticates only"),
        (b"\xff\xfe=", "no list"),
        (b'nonce="x', "no list"),
        (b"a=b," * 2000, "8000 bytes"),
    ],
)
def test_what_is_no_challenge_is_refused(challenge: bytes, wrong: str) -> None:
    with pytest.raises(SaslError, match=wrong):
        exchange().answer(challenge)


def test_names_are_quoted_and_read_quoted() -> None:
    answer = exchange('c"h\\ris').answer(b'nonce="a\\"b", algorithm=md5-sess , qop="auth-int,auth"')
    assert b'username="c\\"h\\\\ris"' in answer
    assert b'nonce="a\\"b"' in answer
    assert b"realm" not in answer


def test_a_name_that_the_charset_lacks_is_told() -> None:
    with pytest.raises(SaslError, match="iso-8859-1"):
        exchange("кто").answer(b'nonce="x",algorithm=md5-sess')


def test_a_password_is_not_shown() -> None:
    assert "secret" not in repr(DigestMd5Credentials(username="chris", password="secret"))
