"""Answers REST calls for services that are not here, such as functions and packages.

Functions, sinks, sources and workers answer as a broker without them does; so do packages, and
transactions, which are off.

Source: Functions, Worker, Packages and Transactions in Pulsar's broker.
"""

from __future__ import annotations

from collections.abc import Iterable
from http import HTTPStatus
from typing import Final, NoReturn

from pulsar_py.admin.http_messages import HttpError, Request
from pulsar_py.admin.router import Handler, Route
from pulsar_py.server.broker import BrokerService
from pulsar_py.server.security.actions import Action

_WORKER: Final = (
    HTTPStatus.CONFLICT,
    "Pulsar Function Worker is not enabled, probably functionsWorkerEnabled is set to false",
)
_PACKAGES: Final = (
    HTTPStatus.SERVICE_UNAVAILABLE,
    "Package Management Service is not enabled in the broker.",
)
_TRANSACTIONS: Final = (
    HTTPStatus.SERVICE_UNAVAILABLE,
    "This Broker is not configured with transactionCoordinatorEnabled=true.",
)

_OPEN: Final = "open to every caller: there is no worker, and nothing of it is told"

PREFIXES: Final = {
    "/admin/v2/worker": _WORKER,
    "/admin/v2/worker-stats": _WORKER,
    "/admin/v2/functions": _WORKER,
    "/admin/v3/functions": _WORKER,
    "/admin/v3/sources": _WORKER,
    "/admin/v3/sinks": _WORKER,
    "/admin/v3/packages": _PACKAGES,
    "/admin/v3/transactions": _TRANSACTIONS,
}
"""What is answered for all that lies below: status and reason."""


class AbsentServices:
    """Answers for what is not there."""

    def __init__(self, broker: BrokerService) -> None:
        del broker  # it is passed to each resource

    def routes(self) -> Iterable[Route]:
        """The routes of this resource: each method of each path below the prefixes."""
        for prefix, (status, reason) in PREFIXES.items():
            for template in (prefix, prefix + "/{rest...}"):
                for method in ("GET", "PUT", "POST", "DELETE"):
                    needs = _OPEN if status == HTTPStatus.CONFLICT else Action.READ_BROKERS
                    yield Route(method, template, _refusal(status, reason), needs, errors=(status,))


def _refusal(status: int, reason: str) -> Handler:
    async def refuse(request: Request) -> NoReturn:  # noqa: ARG001 - whatever it asks for
        raise HttpError(status, reason)

    return refuse
