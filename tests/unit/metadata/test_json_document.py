"""JsonDocument: typed access that loses nothing."""

from __future__ import annotations

import pytest

from pulsar_py.common.errors import MetadataError
from pulsar_py.metadata.json_document import JsonDocument, key
from pulsar_py.metadata.policies_format import INTEGER, TEXTS


class Example(JsonDocument):
    size = key("theSize", INTEGER)
    labels = key("names", TEXTS)


class Longer(Example):
    other = key("other", INTEGER)


def test_attributes_read_their_keys() -> None:
    example = Example.from_bytes(b'{"theSize": 3, "names": ["a"], "unknown": {"x": 1}}')
    assert example.size == 3
    assert example.labels == ("a",)


def test_a_missing_or_null_key_is_none() -> None:
    assert Example().size is None
    assert Example.from_bytes(b'{"theSize": null}').size is None
    assert Example.from_bytes(b"").size is None


def test_numbers_may_come_as_text() -> None:
    assert Example.from_bytes(b'{"theSize": "9"}').size == 9


def test_replace_keeps_what_it_does_not_know() -> None:
    old = Example.from_bytes(b'{"unknown":{"x":1},"theSize":3}')
    new = old.replace(size=4, labels=("b",))
    assert new.to_bytes() == b'{"unknown":{"x":1},"theSize":4,"names":["b"]}'
    assert old.size == 3


def test_replace_by_none_removes_the_key() -> None:
    assert Example(size=3).replace(size=None).to_bytes() == b"{}"


def test_documents_are_equal_by_content() -> None:
    assert Example(size=3) == Example({"theSize": 3})
    assert Example(size=3) != Example(size=4)
    assert Example() != Longer()


def test_subclasses_inherit_keys() -> None:
    longer = Longer(size=1, other=2)
    assert (longer.size, longer.other) == (1, 2)


def test_unknown_attributes_are_our_mistake() -> None:
    with pytest.raises(TypeError, match="Example has no attribute sise"):
        Example(sise=3)


def test_a_document_does_not_change() -> None:
    with pytest.raises(AttributeError, match="replace"):
        Example().size = 3


@pytest.mark.parametrize("data", [b"{", b"[]", b"3", b"\xff"])
def test_what_is_no_object_is_an_error(data: bytes) -> None:
    with pytest.raises(MetadataError, match="stored document is not"):
        Example.from_bytes(data)


def test_a_value_of_the_wrong_kind_is_an_error_when_it_is_read() -> None:
    example = Example({"theSize": "many"})
    with pytest.raises(MetadataError, match="theSize: can't read the stored value 'many'"):
        _ = example.size


def test_text_is_stored_as_utf_8() -> None:
    assert Example({"x": "ü"}).to_bytes() == '{"x":"ü"}'.encode()


def test_repr_shows_the_object() -> None:
    assert repr(Example(size=1)) == "Example({'theSize': 1})"


@pytest.mark.parametrize("data", [b"[" * 100_000, b'{"a":' * 100_000, b'{"theSize": 1e999}'])
def test_what_is_nested_or_counted_without_end_is_an_error(data: bytes) -> None:
    with pytest.raises(MetadataError):
        Example.from_bytes(data)


def test_a_number_that_is_none_is_an_error_where_it_is_read() -> None:
    with pytest.raises(MetadataError, match="theSize"):
        Example({"theSize": float("inf")}).size  # noqa: B018 - reading it is the test
