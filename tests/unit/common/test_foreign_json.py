from __future__ import annotations

import json

import pytest

from pulsar_py.common.foreign_json import MAX_DEFINITION_DEPTH, MAX_JSON_DEPTH, parse_json


def nested(depth: int, opening: str = "[", closing: str = "]", core: str = "1") -> str:
    return opening * depth + core + closing * depth


@pytest.mark.parametrize(
    "text", ["null", "[]", '{"a": [1, -2.5e3, "ä", true, {"b": null}]}', ' "\\ud83d\\ude00" ']
)
def test_plain_json_is_read_as_the_json_module_does(text: str) -> None:
    assert parse_json(text) == parse_json(text.encode()) == json.loads(text)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32-le"])
def test_the_encoding_is_told_by_the_first_bytes(encoding: str) -> None:
    assert parse_json('{"ä": 1}'.encode(encoding)) == {"ä": 1}


@pytest.mark.parametrize("limit", [1, MAX_JSON_DEPTH, MAX_DEFINITION_DEPTH])
@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
def test_the_depth_has_a_limit(opening: str, closing: str, limit: int) -> None:
    parse_json(nested(limit, opening, closing), max_depth=limit)
    parse_json(nested(limit - 1, opening, closing, core="[]"), max_depth=limit)
    with pytest.raises(ValueError, match=f"deeper than {limit}"):
        parse_json(nested(limit + 1, opening, closing), max_depth=limit)
    with pytest.raises(ValueError, match=f"deeper than {limit}"):
        parse_json(nested(limit, opening, closing, core="[]"), max_depth=limit)


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}"), ("[", "")])
def test_a_depth_that_python_can_not_read_is_an_error_like_any_other(
    opening: str, closing: str
) -> None:
    with pytest.raises(ValueError, match="nested deeper"):
        parse_json(nested(100_000, opening, closing))


def test_brackets_in_texts_are_no_depth() -> None:
    assert parse_json('"' + "[" * 1000 + '"') == "[" * 1000
    assert len(parse_json("[" + "[]," * 1000 + "1]")) == 1001
    escaped = '{"\\\\": "\\"[' + "[" * 1000 + '\\\\", "b": [[1]]}'
    assert parse_json(escaped, max_depth=3) == json.loads(escaped)
    with pytest.raises(ValueError, match="deeper than 2"):
        parse_json(escaped, max_depth=2)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[1,]",
        "NaN",
        "[Infinity]",
        '{"a": -Infinity}',
        "1e999",
        "-1e999",
        "9" * 5000,
        '"\\ud800"',
        '{"\\udfff": 1}',
        '{"a": ["\\ud800x"]}',
    ],
)
def test_what_can_not_be_written_again_is_no_json(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - every one of its kinds
        parse_json(text)


@pytest.mark.parametrize("data", [b'"\xff"', b'"\xed\xa0\x80"', b"\xff\xfe"])
def test_bytes_that_are_no_text_are_no_json(data: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - UnicodeDecodeError is one
        parse_json(data)


@pytest.mark.parametrize("number", [2**63 - 1, -(2**63)])
def test_numbers_of_java_have_64_bits(number: int) -> None:
    assert parse_json(f'{{"a": [{number}]}}', is_java=True) == {"a": [number]}
    beyond = number + (1 if number > 0 else -1)
    assert parse_json(str(beyond)) == beyond
    with pytest.raises(ValueError, match="64 bits"):
        parse_json(f'{{"a": [{beyond}]}}', is_java=True)


def test_the_last_of_two_equal_keys_counts() -> None:
    assert parse_json('{"a": 1, "a": 2}') == {"a": 2}
