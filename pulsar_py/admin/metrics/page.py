"""REST resource of `/metrics`, the page for Prometheus.

The page is made while it is written, so that a broker of many topics needs no memory for its text:
first every topic is asked for its numbers, in turns, then their lines follow metric by metric. All
numbers of a topic are of one moment, those of two topics need not be.

Source: PrometheusMetricsServlet, PrometheusMetricsGenerator in Pulsar's broker.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import aclosing
from functools import partial
from http import HTTPStatus
from typing import Final

from pulsar_py.admin.http_messages import HttpError, Request, Response
from pulsar_py.admin.metrics.broker_lines import CounterRates, broker_lines, process_lines
from pulsar_py.admin.metrics.load_lines import load_lines
from pulsar_py.admin.metrics.process_figures import ProcessFigures, process_figures
from pulsar_py.admin.metrics.security_lines import security_lines
from pulsar_py.admin.metrics.store_lines import cursor_lines, store_lines
from pulsar_py.admin.metrics.text_format import CONTENT_TYPE
from pulsar_py.admin.metrics.topic_lines import Selection, TopicFigures
from pulsar_py.admin.router import Route
from pulsar_py.common.loops.work import MAX_UNITS, Turns
from pulsar_py.server.broker import BrokerService
from pulsar_py.server.topics.topic import Topic

OPEN = "open to every caller: Prometheus asks it"

MAX_PAGES: Final = 4
"""Pages that are written at a time; each has the numbers of all topics."""

UNITS_A_TOPIC: Final = 100
"""Units of work that the numbers of a topic with a subscription or none are: 50 in a turn."""

PART_CHARACTERS: Final = 64 * 1024
"""Lines are put together until they have so many characters."""


class Metrics:
    """Serves `/metrics`, with and without a slash at the end."""

    def __init__(
        self,
        broker: BrokerService,
        process: Callable[[], Awaitable[ProcessFigures]] | None = None,
    ) -> None:
        """`process` says what the process uses, None: a thread; virtual time would not wait."""
        self._broker = broker
        self._process = process or partial(asyncio.to_thread, process_figures)
        self._cache_rates = CounterRates(broker.config.statsUpdateFrequencyInSecs)
        self._pages_count = 0

    def routes(self) -> Iterable[Route]:
        """The routes of this resource."""
        return (Route("GET", "/metrics", self.page, OPEN, produces="text/plain"),)

    async def page(self, request: Request) -> Response:  # noqa: ARG002
        """Return the metrics in the text format of Prometheus.

        Raises:
            HttpError: 503 while others read as many pages as are written at a time.
        """
        if self._pages_count >= MAX_PAGES:
            raise HttpError(
                HTTPStatus.SERVICE_UNAVAILABLE,
                f"{MAX_PAGES} callers read the metrics now; ask again later",
            )
        return Response(HTTPStatus.OK, content_type=CONTENT_TYPE, stream=self._parts())

    async def _parts(self) -> AsyncGenerator[bytes, None]:
        self._pages_count += 1
        try:
            waiting: list[str] = []
            size = 0
            async with aclosing(self._pieces()) as pieces:
                async for piece in pieces:
                    waiting.append(piece)
                    size += len(piece)
                    if size >= PART_CHARACTERS:
                        yield "".join(waiting).encode()
                        waiting, size = [], 0
            yield "".join(waiting).encode()
        finally:
            self._pages_count -= 1

    async def _pieces(self) -> AsyncGenerator[str, None]:
        broker, turns = self._broker, Turns()
        cluster = broker.config.clusterName
        broker.loop_lag.watch()
        figures = await self._topic_figures(turns)
        for piece in broker_lines(broker, figures, self._cache_rates):
            yield piece
        for piece in security_lines(broker.authenticators, cluster):
            yield piece
        for piece in process_lines(await self._process(), cluster):
            yield piece
        for piece in load_lines(broker, cluster):
            yield piece
        for piece in store_lines(broker, cluster):
            yield piece
        async for piece in cursor_lines(broker, cluster, turns):
            yield piece
        for piece in figures.pieces():
            yield piece

    async def _topic_figures(self, turns: Turns) -> TopicFigures:
        config = self._broker.config
        figures = TopicFigures(
            config.clusterName,
            Selection(
                by_topic=config.exposeTopicLevelMetricsInPrometheus,
                consumers=config.exposeConsumerLevelMetricsInPrometheus,
                producers=config.exposeProducerLevelMetricsInPrometheus,
                splits_partitions=config.splitTopicAndPartitionLabelInPrometheus,
            ),
        )
        for topic in list(self._broker.topics.topics.values()):
            await turns.take(min(UNITS_A_TOPIC * max(1, len(topic.subscriptions)), MAX_UNITS))
            stats = await topic.stats_in_turns(turns, explains=False)
            figures.add(topic.name, stats, copies_count=self._copies_of(topic))
        return figures

    def _copies_of(self, topic: Topic) -> int:
        return self._broker.ledger_store.copies_of(topic.settings.managed_ledger.ledger_options)
