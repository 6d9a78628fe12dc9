"""The events of topics' policies as `__change_events` of a namespace holds them (pure).

Each event carries all policies of one topic, or none when they are removed, as one message that is
not a batch. Its key is the topic's full name, for policies of all clusters with `__G__` before it;
its payload is an Avro `PulsarEvent` of the schema in `pulsar_event.avsc`, empty for a removal.

`encode_event` makes the payload out of the document that the metadata store has, `decode_event` is
the way back. Both know the schema's fields alone: what else a document has is lost on the way, and
with it for the topic, which is served by what comes back. So each key of `TopicPolicies`, and each
of the objects below, has to be a field of the schema, which a test checks; as the schema is Apache
Pulsar's, a policy of our own can be one of namespaces, but not of topics.

Source: SystemTopicBasedTopicPoliciesService, PulsarEvent and TopicPoliciesEvent in Pulsar.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any, Final, NamedTuple

from pulsar_py.common.errors import InvalidTopicNameError
from pulsar_py.common.foreign_json import parse_json
from pulsar_py.common.names import TopicName
from pulsar_py.schema.avro.avro_codec import AvroReader, AvroWriter

GLOBAL_PREFIX: Final = "__G__"

SCHEMA_PROPERTIES: Final = {"__jsr310ConversionEnabled": "false", "__alwaysAllowNull": "true"}
"""The properties with which Apache Pulsar registers the schema."""

_QUOTAS: Final = "backLogQuotaMap"

_COLLECTIONS: Final[Mapping[str, Any]] = {  # Any: JSON
    _QUOTAS: {},
    "subscriptionPolicies": {},
    "subscriptionTypesEnabled": [],
}
"""Policies that Apache Pulsar never leaves null."""

_OFFLOADING: Final = "offloadPolicies"

_ZEROS: Final[Mapping[str, Any]] = {  # Any: of the Avro type
    "boolean": False,
    "int": 0,
    "long": 0,
    "double": 0.0,
    "string": "",
}


class PolicyEvent(NamedTuple):
    """All policies of a topic, local or for all clusters; `document` is None if they are gone."""

    topic: TopicName
    is_global: bool
    document: dict[str, Any] | None  # Any: JSON of many shapes

    @property
    def key(self) -> str:
        """The key of its message."""
        return f"{GLOBAL_PREFIX if self.is_global else ''}{self.topic.base}"


@cache
def schema_text() -> str:
    """The definition of the schema, byte for byte as Apache Pulsar registers it."""
    from importlib.resources import files  # noqa: PLC0415 - 10 modules, for the first use

    text = files(__package__).joinpath("pulsar_event.avsc").read_text(encoding="utf-8")
    return json.dumps(parse_json(text), separators=(",", ":"))


@cache
def _definition() -> Any:  # Any: Avro's JSON
    return parse_json(schema_text())


@cache
def _writer() -> AvroWriter:
    return AvroWriter(_definition())


@cache
def _reader() -> AvroReader:
    return AvroReader(_definition())


def encode_event(event: PolicyEvent, cluster: str) -> bytes:
    """The payload of an event's message; `cluster` is the one that local policies are for."""
    if event.document is None:
        return b""
    topic = event.topic.base
    record = {
        "actionType": "UPDATE",
        "eventType": "TOPIC_POLICY",
        "replicateTo": None if event.is_global else [cluster],
        "topicPoliciesEvent": {
            "domain": topic.domain,
            "tenant": topic.namespace_name.tenant,
            "namespace": topic.namespace_name.local_name,
            "topic": topic.local_name,
            "policies": {
                **_COLLECTIONS,
                **event.document,
                _QUOTAS: {
                    kind: _sizeless(quota)
                    for kind, quota in (event.document.get(_QUOTAS) or {}).items()
                },
                "isGlobal": event.is_global,
            },
        },
    }
    return _writer().write(_completed(_definition(), record, {}))


def _sizeless(quota: dict[str, Any]) -> dict[str, Any]:  # Any: JSON
    """A quota without its size where that is 0: such a one is by age alone."""
    return quota if quota.get("limitSize") else {**quota, "limitSize": None}


def reader_from(definition: str) -> AvroReader:
    """Reads events that were written with another definition, that of an older broker maybe.

    Raises:
        InvalidConfigurationError: The definition can't be used.
    """
    return AvroReader(parse_json(definition), _definition())


def decode_event(key: str, payload: bytes, reader: AvroReader | None = None) -> PolicyEvent | None:
    """The event of a message; None if it is not about a topic's policies.

    `reader` is for payloads of another definition than `schema_text`.

    Raises:
        SchemaSerializationError: The payload is not that of an event.
    """
    is_global = key.startswith(GLOBAL_PREFIX)
    try:
        topic = TopicName.parse(key.removeprefix(GLOBAL_PREFIX))
    except InvalidTopicNameError:
        return None
    if not payload:
        return PolicyEvent(topic, is_global, None)
    record = _plain((reader or _reader()).read(payload))
    policies = record.get("topicPoliciesEvent", {}).get("policies")
    if record.get("eventType") != "TOPIC_POLICY" or policies is None:
        return None
    document = {
        name: value
        for name, value in policies.items()
        if name != "isGlobal" and (value or name not in _COLLECTIONS)
    }
    offloading = document.get(_OFFLOADING)
    if offloading is not None:
        offloading |= driver_kinds(offloading.get("managedLedgerOffloadDriver"))
    for quota in document.get(_QUOTAS, {}).values():
        quota.setdefault("limitSize", quota["limit"])
    return PolicyEvent(topic, is_global, document)


def driver_kinds(driver: str | None) -> dict[str, bool]:
    """What the driver of offload policies is: their JSON has it, their events have not."""
    name = (driver or "").lower()
    return {
        "s3Driver": name in {"s3", "aws-s3"},
        "gcsDriver": name == "google-cloud-storage",
        "fileSystemDriver": name == "filesystem",
    }


def _completed(  # noqa: PLR0911 - one for each kind of type
    kind: Any,
    value: Any,
    named: dict[str, Any],  # Any: Avro and JSON
) -> Any:
    """`value` with every field that `kind` has and no other; what is missing is null or zero."""
    if isinstance(kind, list):  # a union of null and one more
        other = next(each for each in kind if each != "null")
        known = _completed(other, {} if value is None else value, named)  # defines its names, too
        return None if value is None else known
    if isinstance(kind, str):
        if kind in named:
            return _completed(named[kind], value, named)
        return _ZEROS[kind] if value in (None, {}) else value
    if kind["type"] == "record":
        named[kind["name"]] = kind
        if "namespace" in kind:
            named[f"{kind['namespace']}.{kind['name']}"] = kind
        fields = value or {}
        return {
            field["name"]: _completed(field["type"], fields.get(field["name"]), named)
            for field in kind["fields"]
        }
    if kind["type"] == "array":
        return list(value or ())
    if kind["type"] == "map":
        _completed(kind["values"], {}, named)
        entries = (value or {}).items()
        return {name: _completed(kind["values"], each, named) for name, each in entries}
    return value  # an enum's symbol


def _plain(value: Any) -> Any:  # Any: JSON
    """What the reader gave, without nulls and without the names of types."""
    if isinstance(value, tuple):
        return _plain(value[1])
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items() if each is not None}
    return [_plain(each) for each in value] if isinstance(value, list) else value
