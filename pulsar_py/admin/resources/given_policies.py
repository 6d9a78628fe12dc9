"""Reads the policies that a namespace is created with, as one JSON object (pure).

A text with a number or a boolean counts as one, and a single unknown word of a list of words as
none at all, as in Apache Pulsar. What has another form than its policy is refused, with its name.

Source: Policies and its Jackson mappings in Pulsar; ObjectMapperFactory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import msgspec

from pulsar_py.admin.http_messages import UnreadableBodyError
from pulsar_py.admin.json_values import (
    LONG_BITS,
    read_bool,
    read_int,
    read_object,
    read_properties,
    read_texts,
)
from pulsar_py.metadata.documents import NamespacePolicies
from pulsar_py.metadata.json_document import Codec
from pulsar_py.metadata.policies_format import (
    BOOLEAN,
    INTEGER,
    JSON_OBJECT,
    SCHEMA_COMPATIBILITY,
    TEXT_MAP,
    TEXT_SET,
    TEXTS,
)

_Reader = Callable[[Any, str], Any]  # Any: parsed JSON, and what is read in it
_Roles = dict[str, list[str] | None] | None


class _AuthPolicies(msgspec.Struct):
    """What `auth_policies` has; nulls as Go's client writes them."""

    namespace_auth: _Roles = None
    destination_auth: dict[str, _Roles] | None = None
    subscription_auth_roles: _Roles = None


class _EntryFilters(msgspec.Struct):
    entryFilterNames: str | None = None  # noqa: N815 - a name of Pulsar's


_FORMS: Final[Mapping[str, type]] = {"auth_policies": _AuthPolicies, "entryFilters": _EntryFilters}
_READERS: Final[Mapping[str, _Reader]] = {
    "compaction_threshold": partial(read_int, bits=LONG_BITS),
}
_READERS_OF_KINDS: Final[Mapping[int, _Reader]] = {
    id(INTEGER): read_int,
    id(BOOLEAN): read_bool,
    id(TEXTS): read_texts,
    id(TEXT_SET): read_texts,
    id(TEXT_MAP): read_properties,
}
"""By codec: those that would make something of any value."""


def given_policies(fields: Mapping[str, Any]) -> NamespacePolicies:  # Any: parsed JSON
    """The policies in the form that setters store.

    Raises:
        UnreadableBodyError: One has another form than it should.
    """
    policies = NamespacePolicies({name: each for name, each in fields.items() if each is not None})
    for name in policies.names():
        declared = getattr(NamespacePolicies, name)
        given = policies.json.get(declared.json_name)
        if given is not None:
            value = _read(declared.json_name, declared.codec, given)
            policies = policies.replace(**{name: value})
    return policies


def _read(name: str, codec: Codec[Any], given: Any) -> Any:  # Any: each has its policy's type
    if codec is JSON_OBJECT:
        read_object(given, name)
    if form := _FORMS.get(name):
        try:
            msgspec.convert(given, form)
        except msgspec.ValidationError as error:
            raise UnreadableBodyError(f"{name}: {error}") from None
    if reader := _READERS.get(name) or _READERS_OF_KINDS.get(id(codec)):
        given = reader(given, name)
    try:
        return codec.decode(given)
    except (TypeError, ValueError, KeyError, AttributeError, OverflowError):
        if codec is SCHEMA_COMPATIBILITY and isinstance(given, str):
            return None
        raise UnreadableBodyError(f"{name}: {given!r:.100} is no such policy") from None
