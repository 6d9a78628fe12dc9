"""Collects a broker's settings, statistics and metrics, for `support-bundle` (edge).

Everything comes over the admin API, where secrets in settings are masked, and nothing that reads
messages is asked. Values of properties that users gave to namespaces, topics, subscriptions,
producers and consumers are masked here: only their owners know what is in them. A part that can't
be had is there as its error, so a broker that is half dead still gives the rest. With a data
directory the names and sizes of its files are added.

    README.txt          what is in it, when and of which version
    settings.json       settings in effect, secrets masked        dynamic.json  those changed
    symptoms.json       what `pulsar-py doctor` says
    load.json, topics.json, metrics.txt    load, statistics of all topics, the page for Prometheus
    brokers.json, clusters.json, tenants.json, namespaces/…       who and what there is
    internal/…          ledgers and cursors of the topics with the largest backlogs
    process.json        Python, platform, packages of this command's machine
    files.txt           names and sizes below the data directory
"""

from __future__ import annotations

import io
import json
import platform
import sys
import tarfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from importlib.metadata import distributions
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from pulsar_py.admin_client import AdminClient, AdminSettings
from pulsar_py.admin_client.call import as_text, get, topic_path
from pulsar_py.common.errors import PulsarError
from pulsar_py.common.loops.clock import Clock, SystemClock

__all__ = ["MAX_INTERNAL", "collect", "write_bundle"]

MAX_INTERNAL: Final = 20
"""Topics whose ledgers and cursors are looked at."""
MAX_NAMESPACES: Final = 200
MAX_FILES: Final = 100_000

_OF_USERS: Final = frozenset({"properties", "subscriptionProperties", "metadata"})
"""Keys below which users' own names and values are."""
_HIDDEN: Final = "********"

_PARTS: Final = {
    "settings.json": "/admin/v2/brokers/configuration/runtime",
    "dynamic.json": "/admin/v2/brokers/configuration/values",
    "symptoms.json": "/admin/v2/brokers/symptoms",
    "load.json": "/admin/v2/broker-stats/load-report",
    "topics.json": "/admin/v2/broker-stats/topics",
    "brokers.json": "/admin/v2/brokers",
    "clusters.json": "/admin/v2/clusters",
    "tenants.json": "/admin/v2/tenants",
}


def collect(
    admin: AdminSettings,
    data_dir: Path | None,
    failures: list[str] | None = None,
    clock: Clock | None = None,
) -> Iterator[tuple[str, bytes]]:
    """The files of a bundle, one by one: name and content.

    Args:
        admin: The broker that is asked.
        data_dir: Its directory, if that is here.
        failures: Gets the error of each answer that could not be had.
        clock: For tests.
    """
    ask = _Asking([] if failures is None else failures)
    yield "README.txt", _readme((clock or SystemClock()).wall_time_millis()).encode()
    yield "process.json", _json(_process())
    if data_dir is not None:
        yield "files.txt", "\n".join(_files(data_dir)).encode()
    with AdminClient(admin) as calls:
        answers: dict[str, Any] = {}  # Any: JSON
        for name, path in _PARTS.items():
            answers[name], data = ask.json(partial(calls.send, "GET", path))
            yield name, data
        yield from _namespaces(ask, calls, answers["tenants.json"] or ())
        yield from _internal(ask, calls, answers["topics.json"] or {})
    # The page for Prometheus is no JSON, which clients of the admin API ask for.
    of_text = replace(admin, headers={**admin.headers, "Accept": "text/plain"})
    with AdminClient(of_text) as calls:
        yield "metrics.txt", ask.text(lambda: calls.call(get("/metrics", as_text)))


def write_bundle(
    path: Path,
    files: Iterator[tuple[str, bytes]],
    on_written: Callable[[float], None] = lambda _: None,
) -> int:
    """Write them into a compressed archive that its owner alone can read; returns their number.

    `on_written` is told of each file.

    Raises:
        OSError: It can't be written, or exists.
    """
    count = 0
    path.touch(mode=0o600, exist_ok=False)
    with tarfile.open(path, "w:gz") as archive:
        for name, data in files:
            entry = tarfile.TarInfo(f"{path.name.partition('.')[0]}/{name}")
            entry.size, entry.mode = len(data), 0o600
            archive.addfile(entry, io.BytesIO(data))
            count += 1
            on_written(1)
    return count


class _Asking:
    """Asks, and notes the errors."""

    def __init__(self, failures: list[str]) -> None:
        self._failures = failures

    def json(self, ask: Callable[[], Any]) -> tuple[Any, bytes]:  # Any: JSON
        """An answer, and what of it is written."""
        try:
            answer = ask()
        except PulsarError as error:
            self._failures.append(str(error))
            return None, _json({"error": str(error)})
        return answer, _json(_without_values(answer))

    def text(self, ask: Callable[[], str]) -> bytes:
        """An answer that is no JSON."""
        try:
            return ask().encode()
        except PulsarError as error:
            self._failures.append(str(error))
            return f"error: {error}\n".encode()


def _without_values(answer: Any, *, is_of_users: bool = False) -> Any:  # Any: JSON
    """The answer with users' texts masked; numbers stay, as cursors have them for themselves."""
    if isinstance(answer, dict):
        return {
            key: _without_values(value, is_of_users=is_of_users or key in _OF_USERS)
            for key, value in answer.items()
        }
    if isinstance(answer, list):
        return [_without_values(each, is_of_users=is_of_users) for each in answer]
    return _HIDDEN if is_of_users and isinstance(answer, str) and answer else answer


def _namespaces(
    ask: _Asking, calls: AdminClient, tenants: Any
) -> Iterator[tuple[str, bytes]]:  # Any: JSON
    count = 0
    for tenant in tenants:
        path = f"/admin/v2/namespaces/{quote(tenant, safe='')}"
        names, _ = ask.json(partial(calls.send, "GET", path))
        for name in names or ():
            if count >= MAX_NAMESPACES:
                return
            count += 1
            _, data = ask.json(partial(calls.send, "GET", f"/admin/v2/namespaces/{name}"))
            yield f"namespaces/{name.replace('/', '-')}.json", data


def _internal(
    ask: _Asking, calls: AdminClient, answer: Mapping[str, Any]
) -> Iterator[tuple[str, bytes]]:  # Any: JSON
    backlogs: list[tuple[int, str]] = []
    for bundles in answer.values():
        for kinds in bundles.values():
            for name, topic in kinds.get("persistent", {}).items():
                subscriptions = topic.get("subscriptions", {}).values()
                backlogs.append((sum(each.get("msgBacklog", 0) for each in subscriptions), name))
    for number, (_, name) in enumerate(sorted(backlogs, reverse=True)[:MAX_INTERNAL]):
        path = f"/admin/v2/{topic_path(name)}/internalStats"
        _, data = ask.json(lambda path=path: calls.send("GET", path))  # type: ignore[misc] # bound now
        yield f"internal/{number:02}.json", data


def _process() -> dict[str, Any]:  # Any: JSON
    return {
        "python": sys.version,
        "platform": platform.platform(),
        "machine": platform.machine(),
        "packages": {
            each.metadata["Name"]: each.version
            for each in sorted(distributions(), key=lambda each: str(each.metadata["Name"]))
        },
    }


def _files(directory: Path) -> Iterator[str]:
    for count, path in enumerate(sorted(directory.rglob("*"))):
        if count >= MAX_FILES:
            yield "and more"
            return
        try:
            yield f"{path.stat().st_size:>14} {path.relative_to(directory)}"
        except OSError:
            continue  # it was deleted meanwhile


def _readme(millis: int) -> str:
    from pulsar_py.cli.watching.shown_messages import iso_millis  # loads the client

    return (
        f"A broker of pulsar_py, looked at {iso_millis(millis)}.\n"
        "Secrets in settings are masked, so are values of properties, and there is no payload of "
        "any message. There are names "
        "of tenants, namespaces, topics, subscriptions, roles, and addresses of clients.\n"
    )


def _json(value: Any) -> bytes:  # Any: JSON
    return (json.dumps(value, indent=1, sort_keys=True) + "\n").encode()
