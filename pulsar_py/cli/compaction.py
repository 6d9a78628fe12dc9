"""`pulsar-py compact-topic`: asks the broker to compact a topic, and waits until it has.

It only calls REST, with the address and the credentials that every command has: the broker that
serves the topic compacts it. On a terminal a bar counts the partitions that are done; of a single
topic nobody knows how far it is, so the bar only moves.

Source: CompactorTool and `pulsar-admin topics compact` in Pulsar.
"""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

import click

from pulsar_py.cli.answering.answers import ANSWER, answer
from pulsar_py.cli.watching.connecting import CONNECTION, admin_settings_of, connection_of

if TYPE_CHECKING:
    from pulsar_py.admin_client import AdminSettings, AsyncAdminClient
    from pulsar_py.common.loops.clock import Clock
    from pulsar_py.common.names import TopicName

POLL_SECONDS: Final = 0.2


class CompactionFailedError(Exception):
    """The topic was not compacted; the text says why."""


@dataclass(frozen=True, slots=True)
class CompactionRequest:
    """One call of the command.

    Attributes:
        settings: The REST API, and who asks.
        topic: The topic, or the partition.
        timeout_seconds: How long to wait for the end; 0 does not wait.
    """

    settings: AdminSettings
    topic: str
    timeout_seconds: float


@click.command("compact-topic")
@click.option("--topic", "-t", required=True, help="The topic, with or without partitions.")
@click.option("--web-service-url", help="Another name of --admin-url.")
@click.option(
    "--timeout",
    "timeout_seconds",
    type=click.FloatRange(0),
    default=3600.0,
    show_default=True,
    help="Seconds to wait for the end; 0 does not wait.",
)
@ANSWER
@CONNECTION
def command(
    *,
    topic: str,
    output: str,
    web_service_url: str | None,
    timeout_seconds: float,
    admin_url: str | None,
    **options: Any,  # Any: click's values
) -> None:
    """Keep the newest message of each key of a topic, for readers that ask for those.

    The broker does it; this command calls it over HTTP and waits.
    """
    import asyncio

    from pulsar_py.common.errors import PulsarError

    try:
        connection = connection_of({**options, "admin_url": admin_url or web_service_url})
        request = CompactionRequest(admin_settings_of(connection), topic, timeout_seconds)
        asyncio.run(compact_topic(request))
    except (PulsarError, CompactionFailedError) as error:
        raise click.ClickException(str(error)) from None
    outcome = "compacted" if timeout_seconds else "begun"
    text = f"{topic}: compacted" if timeout_seconds else f"{topic}: compaction begun"
    answer(output, {"topic": topic, "outcome": outcome}, text)


async def compact_topic(request: CompactionRequest, clock: Clock | None = None) -> None:
    """Compact a topic, or all its partitions.

    Raises:
        CompactionFailedError: The broker refused, the compaction failed, or the time is over.
        ConnectError: The broker could not be reached.
        ServiceError: The broker did not say how it goes.
    """
    from pulsar_py.admin_client import AsyncAdminClient, topics
    from pulsar_py.admin_client.settings import answer_of_error
    from pulsar_py.cli.backups.progress import progress
    from pulsar_py.common.errors import ServiceError
    from pulsar_py.common.loops.clock import SystemClock
    from pulsar_py.common.names import TopicName

    name = TopicName.parse(request.topic)
    clock = clock or SystemClock()
    deadline = clock.monotonic_seconds() + request.timeout_seconds
    async with AsyncAdminClient(request.settings) as admin:
        try:
            await admin.call(topics.compact(str(name)))
        except ServiceError as error:
            status, reason = answer_of_error(error) or (0, str(error))
            if status != HTTPStatus.CONFLICT:  # it is under way
                raise CompactionFailedError(f"{name} is not compacted: {reason}") from None
        if request.timeout_seconds <= 0:
            return
        count = (await admin.call(topics.partitions(str(name)))).partitions
        names = [name.partition(index) for index in range(count)] or [name]
        total = len(names) if len(names) > 1 else None
        with progress(f"compacting {name}", total, is_bytes=False) as moved:
            for each in names:
                await _until_done(admin, each, clock, deadline)
                moved(1)


async def _until_done(
    admin: AsyncAdminClient, name: TopicName, clock: Clock, deadline: float
) -> None:
    from pulsar_py.admin_client import topics

    while True:
        found = await admin.call(topics.compaction_status(str(name)))
        if found.status == "ERROR":
            raise CompactionFailedError(f"{name}: the compaction failed: {found.last_error}")
        if found.status == "NOT_RUN":
            raise CompactionFailedError(
                f"{name}: the topic was unloaded before it was compacted; ask again"
            )
        if found.status != "RUNNING":
            return
        if clock.monotonic_seconds() >= deadline:
            raise CompactionFailedError(
                f"{name}: the compaction still runs when the time is over; it goes on"
            )
        await clock.sleep(POLL_SECONDS)
