"""REST resource that tells load balancers whether to send clients here: `/status.html`.

It answers while a file is there, which operators make and remove (`statusFilePath`), and while the
broker can serve topics.

Source: VipStatus in Pulsar's broker.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from pulsar_py.admin.http_messages import TEXT, PathValueError, Request, Response, text_response
from pulsar_py.admin.router import Route
from pulsar_py.common.errors import ServiceNotReadyError, StoreUnavailableError
from pulsar_py.server.broker import BrokerService


class VipStatus:
    """One page."""

    def __init__(self, broker: BrokerService) -> None:
        self._broker = broker

    def routes(self) -> Iterable[Route]:
        """The routes of this resource."""
        needs = "open to every caller: load balancers ask it"
        return (Route("GET", "/status.html", self.page, needs, produces=TEXT),)

    async def page(self, request: Request) -> Response:  # noqa: ARG002
        """Return `OK`, or 404 with a page."""
        if not _is_there(self._broker.config.statusFilePath):
            raise PathValueError
        try:
            await self._broker.check_ready()
        except (ServiceNotReadyError, StoreUnavailableError):
            raise PathValueError from None
        return text_response("OK", content_type=TEXT)


def _is_there(path: str) -> bool:
    """Whether there is a file; one look at a directory is no reason for a thread."""
    return bool(path) and Path(path).is_file()
