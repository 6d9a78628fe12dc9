"""`pulsar-py compact-topic`: asks the broker to compact a topic, and waits until it has.

It only calls REST: the broker that serves the topic compacts it. On a terminal a bar counts the
partitions that are done; of a single topic nobody knows how far it is, so the bar only moves.

Source: CompactorTool and `pulsar-admin topics compact` in Pulsar.
"""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPMethod, HTTPStatus
from typing import Any, Final
from urllib.parse import quote

from pulsar_py.cli.backups.progress import progress
from pulsar_py.common.loops.clock import Clock, SystemClock
from pulsar_py.common.names import TopicName
from pulsar_py.common.network.http_client import HttpClient, HttpRequest

POLL_SECONDS: Final = 0.2
_REQUEST_TIMEOUT_SECONDS: Final = 30.0
_MAX_REDIRECTS: Final = 5


class CompactionFailedError(Exception):
    """The topic was not compacted; the text says why."""


@dataclass(frozen=True, slots=True)
class CompactionRequest:
    """One call of the command.

    Attributes:
        web_service_url: A broker's HTTP address.
        topic: The topic, or the partition.
        timeout_seconds: How long to wait for the end; 0 does not wait.
    """

    web_service_url: str
    topic: str
    timeout_seconds: float


async def compact_topic(request: CompactionRequest, clock: Clock | None = None) -> None:
    """Compact a topic, or all its partitions.

    Raises:
        CompactionFailedError: The broker refused, the compaction failed, or the time is over.
        ClientError: The broker could not be reached.
    """
    name = TopicName.parse(request.topic)
    base = f"{request.web_service_url.rstrip('/')}/admin/v2"
    clock = clock or SystemClock()
    deadline = clock.monotonic_seconds() + request.timeout_seconds
    async with HttpClient(
        timeout_seconds=_REQUEST_TIMEOUT_SECONDS, max_redirects=_MAX_REDIRECTS, trust_options=""
    ) as client:
        url = f"{base}/{_path(name)}/compaction"
        answer = await client.send(HttpRequest(method=HTTPMethod.PUT, url=url))
        if not answer.is_success and answer.status != HTTPStatus.CONFLICT:  # it is under way
            raise CompactionFailedError(f"{name} is not compacted: {answer.reason()}")
        if request.timeout_seconds <= 0:
            return
        parts = await _answer(client, f"{base}/{_path(name)}/partitions")
        names = [name.partition(index) for index in range(parts["partitions"])] or [name]
        total = len(names) if len(names) > 1 else None
        with progress(f"compacting {name}", total, is_bytes=False) as moved:
            for each in names:
                await _until_done(client, f"{base}/{_path(each)}/compaction", each, clock, deadline)
                moved(1)


def _path(name: TopicName) -> str:
    return f"{name.domain}/{name.namespace_name}/{quote(name.local_name, safe='')}"


async def _until_done(
    client: HttpClient, url: str, name: TopicName, clock: Clock, deadline: float
) -> None:
    while True:
        found = await _answer(client, url)
        if found["status"] == "ERROR":
            raise CompactionFailedError(f"{name}: the compaction failed: {found['lastError']}")
        if found["status"] == "NOT_RUN":
            raise CompactionFailedError(
                f"{name}: the topic was unloaded before it was compacted; ask again"
            )
        if found["status"] != "RUNNING":
            return
        if clock.monotonic_seconds() >= deadline:
            raise CompactionFailedError(
                f"{name}: the compaction still runs when the time is over; it goes on"
            )
        await clock.sleep(POLL_SECONDS)


async def _answer(client: HttpClient, url: str) -> dict[str, Any]:  # Any: JSON
    answer = await client.send(HttpRequest(url=url))
    if not answer.is_success:
        raise CompactionFailedError(f"{url}: {answer.reason()}")
    found: dict[str, Any] = answer.json()
    return found
