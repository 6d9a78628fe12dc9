"""http_heads: which heads a proxy may have understood otherwise."""

from __future__ import annotations

import pytest

from pulsar_py.admin.http_heads import (
    can_be_read_in_two_ways,
    has_odd_lines,
    head_bytes,
    in_origin_form,
    said_body_bytes,
)

PLAIN = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"


@pytest.mark.parametrize(
    ("received", "expected"),
    [
        (b"", False),
        (PLAIN, False),
        (PLAIN[:15], False),
        (PLAIN[:16], False),
        (PLAIN + b"\n\n", False),
        (PLAIN.replace(b"\r", b""), True),
        (b"GET / HTTP/1.1\n", True),
        (b"\n" + PLAIN, True),
        (b"GET / HTTP/1.1\r\nHost: a\n\r\n", True),
        (b"GET / HTTP/1.1\r\nHost: a\r\n b\r\n\r\n", True),
        (b"GET / HTTP/1.1\r\n\tHost: a\r\n", True),
    ],
)
def test_lines_of_a_head(received: bytes, *, expected: bool) -> None:
    assert has_odd_lines(received) is expected


@pytest.mark.parametrize(
    ("headers", "version", "expected"),
    [
        ([], b"1.1", False),
        ([(b"accept", b"a"), (b"accept", b"b")], b"1.1", False),
        ([(b"authorization", b"a"), (b"authorization", b"b")], b"1.1", True),
        ([(b"origin", b"a"), (b"origin", b"a")], b"1.1", True),
        ([(b"transfer-encoding", b"chunked")], b"1.1", False),
        ([(b"transfer-encoding", b"chunked")], b"1.0", True),
        ([(b"transfer-encoding", b"chunked"), (b"content-length", b"1")], b"1.1", True),
    ],
)
def test_what_is_said_twice(
    headers: list[tuple[bytes, bytes]], version: bytes, *, expected: bool
) -> None:
    whole = [(b"host", b"a"), *headers]
    assert can_be_read_in_two_ways(whole, version) is expected


def test_the_size_of_a_head() -> None:
    assert head_bytes(b"/it", [(b"host", b"a")]) == len("/it") + len("host: a\r\n")


@pytest.mark.parametrize(
    ("target", "path", "host"),
    [
        (b"/a?b=http://c/d", b"/a?b=http://c/d", b"said"),
        (b"http://meant:80/a/b?c=/d", b"/a/b?c=/d", b"meant:80"),
        (b"HTTPS://meant", b"/", b"meant"),
        (b"http://meant?a=b", b"/?a=b", b"meant"),
        (b"http:///a", b"/a", b""),
        (b"ftp://meant/a", b"ftp://meant/a", b"said"),
    ],
)
def test_the_host_of_a_target_counts(target: bytes, path: bytes, host: bytes) -> None:
    headers = [(b"accept", b"*/*"), (b"host", b"said")]
    found, fields = in_origin_form(target, headers)
    assert (found, dict(fields)) == (path, {b"accept": b"*/*", b"host": host})


@pytest.mark.parametrize(
    ("value", "expected"), [(b"0", 0), (b"12", 12), (b"9" * 5000, int("9" * 20))]
)
def test_the_size_that_a_request_announces(value: bytes, expected: int) -> None:
    assert said_body_bytes([(b"host", b"a"), (b"content-length", value)]) == expected
    assert said_body_bytes([(b"host", b"a")]) == 0
