"""The commands of `pulsar-py admin schemas` (declarations).

Source: CmdSchemas in Pulsar's client tools.
"""

from __future__ import annotations

import base64
import contextlib
from pathlib import Path
from typing import Any, Final

from pulsar_py.admin_client import topics
from pulsar_py.admin_client.call import full_topic
from pulsar_py.admin_client.records import SchemaPayload
from pulsar_py.cli.admin import output
from pulsar_py.cli.admin.words import TOPIC, Args, Group, Steps, Word, WordFailedError, group
from pulsar_py.common.foreign_json import parse_json

_PRIMITIVE: Final = frozenset(
    {"NONE", "STRING", "BOOLEAN", "INT8", "INT16", "INT32", "INT64", "FLOAT", "DOUBLE", "BYTES"}
)


def _get(a: Args) -> Steps:
    """The newest schema with its version, that of one version, or all."""
    if a.version is not None and a.all_version:
        raise ValueError("Only one or neither of --version and --all-version can be specified.")
    name = full_topic(a.topic).rpartition("/")[2]
    if a.all_version:
        reply = yield topics.all_schemas(a.topic)
        return [_whole(name, each) for each in reply.json()["getSchemaResponses"]]
    reply = yield topics.schema(a.topic, a.version)
    info = _info(name, reply.json())
    if a.version is not None:
        return info
    return {"version": reply.json()["version"], "schemaInfo": info}


def _info(name: str, found: dict[str, Any]) -> dict[str, Any]:
    schema: Any = found["data"]
    with contextlib.suppress(ValueError):  # one that is no JSON is shown as it is
        schema = parse_json(schema)
    return {
        "name": name,
        "schema": schema,
        "type": found["type"],
        "timestamp": found.get("timestamp", 0),
        "properties": found.get("properties") or {},
    }


def _whole(name: str, found: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": name,
        "schema": base64.b64encode(found["data"].encode()).decode(),
        "type": found["type"],
        "timestamp": found.get("timestamp", 0),
        "properties": found.get("properties") or {},
        "schemaDefinition": "" if found["type"] in _PRIMITIVE else found["data"],
    }


def _show(value: Any) -> str:  # Any: JSON
    return output.lines(value) if isinstance(value, list) else output.gson(value)


def _payload(a: Args) -> SchemaPayload:
    """The body from a file with `type`, `schema` and `properties`.

    Raises:
        ValueError: It can't be read, or is not of this form.
    """
    try:
        found: Any = parse_json(Path(a.filename).read_text())
        return SchemaPayload(
            type=found["type"],
            schema=found.get("schema", ""),
            properties=found.get("properties") or {},
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(
            f'{a.filename}: expected {{"type": .., "schema": .., "properties": {{}}}}: {error}'
        ) from None


def _upload(a: Args) -> Steps:
    yield topics.upload_schema(a.topic, _payload(a))


def _delete(a: Args) -> Steps:
    yield topics.delete_schema(a.topic, force=a.force)


def _check(a: Args) -> Steps:
    yield topics.check_schema(a.topic, _payload(a))


def _extract(_: Args) -> Steps:
    raise WordFailedError("a schema is made of a Java class by Apache Pulsar's pulsar-admin only")
    yield  # makes it a generator


# fmt: off
SCHEMAS: Final[Group] = group(
    Word("get", "Show a topic's schema", TOPIC, "-v/--version:long -a/--all-version:flag", _get,
         show=_show),
    Word("delete", "Delete a topic's schema", TOPIC, "-f/--force:flag", _delete),
    Word("upload", "Add a schema, unless it is there", TOPIC, "-f/--filename!", _upload),
    Word("extract", "Make a schema of a Java class; not here", TOPIC,
         "-j/--jar! -t/--type! -c/--classname! -a/--always-allow-null:bool=true -n/--dry-run:flag",
         _extract),
    Word("metadata", "Show where the registry has the versions", TOPIC, "",
         lambda a: topics.schema_metadata(a.topic)),
    Word("compatibility", "See whether a schema may be added", TOPIC, "-f/--filename!", _check),
)
# fmt: on
