"""properties_text: as java.util.Properties reads it (checked against it)."""

from __future__ import annotations

import pytest

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.server.properties_text import commented_names, parse_properties, property_lines


@pytest.mark.parametrize(
    ("text", "properties"),
    [
        ("a=1", {"a": "1"}),
        ("a = 1 ", {"a": "1 "}),
        ("  a\t:\t1", {"a": "1"}),
        ("a 1", {"a": "1"}),
        ("a", {"a": ""}),
        ("a=", {"a": ""}),
        ("a==1", {"a": "=1"}),
        ("a : = 1", {"a": "= 1"}),
        ("a=b=c", {"a": "b=c"}),
        ("a=1\na=2", {"a": "2"}),
        ("# a=1\n! b=2\n  # c=3\nd=4", {"d": "4"}),
        ("a=1#2", {"a": "1#2"}),
        ("a=1,\\\n   2,\\\r\n\t3\nb=4", {"a": "1,2,3", "b": "4"}),
        ("a=1\\\n# no comment", {"a": "1# no comment"}),
        ("a=1\\\\\nb=2", {"a": "1\\", "b": "2"}),
        ("a=1\\", {"a": "1"}),
        ("a=\\t\\n\\u00e9\\q", {"a": "\t\n\u00e9q"}),
        ("a\\=b\\ c=1", {"a=b c": "1"}),
        ("\r\n\n\r  \n", {}),
        ("a=1\rb=2\r\nc=3", {"a": "1", "b": "2", "c": "3"}),
        ("", {}),
    ],
)
def test_a_text_is_read_as_java_reads_it(text: str, properties: dict[str, str]) -> None:
    assert parse_properties(text) == properties


@pytest.mark.parametrize("text", ["a=\\u12", "a=\\uzzzz", "a=\\u-123"])
def test_a_broken_escape_is_an_error(text: str) -> None:
    with pytest.raises(ConfigurationError, match="four hexadecimal digits"):
        parse_properties(text)


def test_lines_know_their_number_and_whether_they_have_a_separator() -> None:
    lines = property_lines("# c\n a=1\\\n2\n\nb c\nd : e")
    seen = [(each.number, each.text, each.name, each.has_separator) for each in lines]
    assert seen == [(2, "a=12", "a", True), (5, "b c", "b", False), (6, "d : e", "d", True)]


def test_names_that_are_commented_out_are_places() -> None:
    assert commented_names("#a=1\n # b = 2\n# a sentence = no\nc=3\n## d=1") == {"a", "b"}
