"""Brokers: list, health, version.

Source: admin.md 3.12 with its corrections.
"""

from __future__ import annotations

from collections.abc import Iterable
from http import HTTPStatus
from typing import Final

from pulsar_py.admin.http_messages import (
    HttpError,
    Request,
    Response,
    json_response,
    text_response,
)
from pulsar_py.admin.resources.topic_access import broker_id_of
from pulsar_py.admin.router import Route, get
from pulsar_py.server.broker import BrokerService

BROKERS: Final = "/admin/v2/brokers"
VERSION: Final = "4.2.4"
"""The version of Pulsar whose behaviour this is; tools compare it."""


class Brokers:
    """The brokers of the cluster, of which this is the only one."""

    def __init__(self, broker: BrokerService) -> None:
        self._broker = broker

    def routes(self) -> Iterable[Route]:
        """The routes of this resource."""
        return (
            get(BROKERS, self.active),
            get(BROKERS + "/{cluster}", self.active),
            get(BROKERS + "/leaderBroker", self.leader),
            get(BROKERS + "/health", self.health),
            get(BROKERS + "/ready", self.ready),
            get(BROKERS + "/version", self.version),
        )

    async def active(self, request: Request) -> Response:  # noqa: ARG002 - any cluster
        """Ids of the brokers."""
        return json_response([broker_id_of(self._broker)])

    async def leader(self, request: Request) -> Response:  # noqa: ARG002
        """The broker that leads."""
        broker_id = broker_id_of(self._broker)
        return json_response({"serviceUrl": f"http://{broker_id}", "brokerId": broker_id})

    async def health(self, request: Request) -> Response:
        """`ok` when the broker can store a key and read it back."""
        wanted = request.query.get("brokerId")
        if wanted is not None and wanted != broker_id_of(self._broker):
            raise HttpError(
                HTTPStatus.NOT_FOUND, f"Broker id '{wanted}' not found in available brokers."
            )
        await self._broker.check_health()
        return text_response("ok")

    async def ready(self, request: Request) -> Response:  # noqa: ARG002
        """`ok`; while the broker starts there is nobody to answer."""
        return text_response("ok")

    async def version(self, request: Request) -> Response:  # noqa: ARG002
        """The version as raw text."""
        return text_response(VERSION)
