"""Prometheus' page.

The exporter itself comes with the issue on observability; this page has what is known without it,
so that probes which only want a 200 are served.

Source: admin.md 1.4 and 3.15.
"""

from __future__ import annotations

from collections.abc import Iterable
from http import HTTPStatus

from pulsar_py.admin.http_messages import Request, Response
from pulsar_py.admin.router import Route
from pulsar_py.server.broker import BrokerService

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """`/metrics`, with and without a slash at the end."""

    def __init__(self, broker: BrokerService) -> None:
        self._broker = broker

    def routes(self) -> Iterable[Route]:
        """The routes of this resource."""
        return (Route("GET", "/metrics", self.page, produces="text/plain"),)

    async def page(self, request: Request) -> Response:  # noqa: ARG002
        """The text."""
        cluster = self._broker.config.clusterName
        topics = self._broker.topics.topics
        producers_count = sum(len(topic.producers) for topic in topics.values())
        consumers_count = sum(topic.consumers_count for topic in topics.values())
        lines = []
        for name, value in (
            ("pulsar_topics_count", len(topics)),
            ("pulsar_producers_count", producers_count),
            ("pulsar_consumers_count", consumers_count),
        ):
            lines.append(f"# TYPE {name} gauge")
            lines.append(f'{name}{{cluster="{cluster}"}} {value}')
        return Response(HTTPStatus.OK, ("\n".join(lines) + "\n").encode(), CONTENT_TYPE)
