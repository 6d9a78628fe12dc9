"""The work of `pulsar-py metadata`: looks at what is in ZooKeeper (edge)."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

from pulsar_py.cli.places import ClusterClients, show, show_one
from pulsar_py.common.errors import MetadataNotFoundError
from pulsar_py.common.foreign_json import parse_json
from pulsar_py.metadata import paths
from pulsar_py.metadata.store import MetadataStore, Versioned


async def ls(cluster: ClusterClients, path: str, output: str, *, is_recursive: bool) -> int:
    """Print the names below a path; returns the exit code."""
    paths.check(path)
    store = cluster.metadata.local
    names = await store.children(path)
    if not names and path != "/":
        await _stored(store, path)
    if is_recursive:
        names = [each async for each in _below(store, path)]
    if output == "json":
        show([{"path": name} for name in names], ("path",), output)
    else:
        sys.stdout.writelines(f"{name}\n" for name in names)
    return 0


async def _below(store: MetadataStore, path: str) -> AsyncIterator[str]:
    for name in await store.children(path):
        child = f"{path.rstrip('/')}/{name}"
        yield child
        async for each in _below(store, child):
            yield each


async def get(cluster: ClusterClients, path: str, output: str, *, is_raw: bool) -> int:
    """Print a value; returns the exit code."""
    paths.check(path)
    value = (await _stored(cluster.metadata.local, path)).value
    if is_raw:
        sys.stdout.buffer.write(value)
        sys.stdout.buffer.flush()
        return 0
    readable = _readable(value)
    if output == "json":
        show_one({"path": path, "value": readable}, output)
    elif isinstance(readable, str):
        sys.stdout.write(f"{readable}\n")
    else:
        sys.stdout.write(f"{json.dumps(readable, indent=2, ensure_ascii=False)}\n")
    return 0


def _readable(value: bytes) -> Any:  # Any: JSON
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return value.hex()
    try:
        return parse_json(value)
    except ValueError:
        return text if text.replace("\n", "").replace("\t", "").isprintable() else value.hex()


async def stat(cluster: ClusterClients, path: str, output: str) -> int:
    """Print what is known of a key; returns the exit code."""
    paths.check(path)
    store = cluster.metadata.local
    found = await _stored(store, path)
    children = await store.children(path)
    show_one(
        {
            "path": path,
            "version": found.version,
            "created": _time(found.created_millis),
            "modified": _time(found.modified_millis),
            "bytes": len(found.value),
            "children": len(children),
            "owner": found.owner,
        },
        output,
    )
    return 0


async def _stored(store: MetadataStore, path: str) -> Versioned:
    found = await store.get(path)
    if found is None:
        raise MetadataNotFoundError(f"{path} does not exist")
    return found


def _time(millis: int) -> str:
    return datetime.fromtimestamp(millis / 1000, UTC).isoformat(timespec="milliseconds")
