"""`Console`: the console of one broker, an application of its own beside the REST API.

`web` hands it the requests below `/console` and `/admin/console`, and makes it when the first of
them comes. Its calls have actions, an audit and rules for pages as those of the REST API; what lies
below `/admin` needs authentication before anything else, there as here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Self

from pulsar_py.admin.api.document_page import DocumentPage
from pulsar_py.admin.app import AdminApp, Guard
from pulsar_py.admin.foreign_pages import PageRules
from pulsar_py.admin.http_messages import Response
from pulsar_py.admin.router import Route
from pulsar_py.console.assets import Assets
from pulsar_py.console.callers import BASE, Callers
from pulsar_py.console.hole_pictures import HolePictures
from pulsar_py.console.listings import Listings
from pulsar_py.console.live_figures import LiveFigures
from pulsar_py.console.policy_origins import PolicyOrigins
from pulsar_py.console.previews import Previews
from pulsar_py.console.sending import NewClient, Sending
from pulsar_py.console.setting_lists import SettingLists
from pulsar_py.console.topic_pages import TopicPages
from pulsar_py.server.broker import BrokerService
from pulsar_py.server.security.peer import Peer

__all__ = ["Console", "console_routes"]


def console_routes(broker: BrokerService, assets: Assets, new_client: NewClient) -> Iterable[Route]:
    """The routes of the console of one broker."""
    callers = Callers(broker)
    resources = (
        callers,
        LiveFigures(broker),
        Listings(broker, callers),
        TopicPages(broker),
        HolePictures(broker),
        Previews(broker),
        PolicyOrigins(broker),
        SettingLists(broker),
        Sending(broker, callers, new_client),
    )
    calls = [*chain.from_iterable(each.routes() for each in resources)]
    return [*assets.routes(), *calls, *DocumentPage(calls, BASE + "/openapi.json").routes()]


class Console:
    """The console of one broker; `web` owns it."""

    def __init__(
        self,
        broker: BrokerService,
        assets: Assets,
        access: Guard | None,
        page_rules: PageRules,
        new_client: NewClient,
    ) -> None:
        """`access` guards calls as it does the REST API's; `new_client` publishes for callers."""
        self._app = AdminApp(
            console_routes(broker, assets, new_client),
            access,
            broker.hooks.interceptors,
            page_rules=page_rules,
            audit=broker.audit,
        )

    @classmethod
    async def open(
        cls,
        broker: BrokerService,
        access: Guard | None,
        page_rules: PageRules,
        new_client: NewClient,
    ) -> Self:
        """The console with its files, which are read off the loop."""
        assets = await asyncio.to_thread(Assets.read)
        return cls(broker, assets, access, page_rules, new_client)

    async def handle(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes, peer: Peer
    ) -> Response:
        """Answer one request."""
        return await self._app.handle(method, target, headers, body, peer)
