"""Resource of tenants, namespaces and topics, searched, sorted and returned page by page.

    GET /admin/console/tenants                         those in which the caller has any right
    GET /admin/console/namespaces/{tenant}             the same of a tenant's namespaces
    GET /admin/console/topics/{tenant}/{namespace}     topics with what their lines show

    query       search   a text that names contain, in upper or lower case
                after    the last name of the page before; names come in order
                limit    1 to 200; 50
    answer      {"items": […], "more": whether there are further ones, "total": names that match}

A partitioned topic is one line, with sums over its partitions. Figures are those of topics that
are loaded here; a topic that is not has none. Nothing is loaded by looking at a list.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from http import HTTPStatus
from typing import Any, Final

from msgspec import Struct

from pulsar_py.admin.declared import Flag, Text
from pulsar_py.admin.http_messages import HttpError, Request, Response, json_response
from pulsar_py.admin.resources.requests import namespace_of, tenant_of
from pulsar_py.admin.resources.topic_access import NOT_THERE, require_namespace
from pulsar_py.admin.router import Route, get
from pulsar_py.common.loops.work import Turns
from pulsar_py.common.names import TopicName
from pulsar_py.console.answers import NamespacePage, TenantPage, TopicPage
from pulsar_py.console.callers import BASE, Callers
from pulsar_py.console.parameters import Amount
from pulsar_py.server.broker import BrokerService
from pulsar_py.server.security.actions import Action
from pulsar_py.server.security.authorization import AccessTarget, Caller
from pulsar_py.server.topics.topic import Topic

__all__ = ["PAGE", "ListPage", "Listings", "page_of"]

OWN: Final = "open to every caller: it lists only what the caller has a right in"
MAX_LIMIT: Final = 200

_SEARCH: Final = Text("search")
_AFTER: Final = Text("after")
_LIMIT: Final = Amount("limit", minimum=1, maximum=MAX_LIMIT, default=50)
PAGE: Final = (_SEARCH, _AFTER, _LIMIT)
"""What part of a list is asked for; `ListPage` reads them."""
_SYSTEM_TOO: Final = Flag("system")
_SEARCH_CHARACTERS: Final = 500
_SCANNED_NAMESPACES: Final = 1000
"""Namespaces of a tenant that are looked at for whether a role has a right in one of them."""


class ListPage(Struct, frozen=True, kw_only=True):
    """The part of a list that is asked for."""

    search: str
    after: str
    limit: int

    @classmethod
    def of(cls, request: Request) -> ListPage:
        """Read it from a query.

        Raises:
            HttpError: 400, a parameter is not what it has to be.
        """
        return cls(
            search=(_SEARCH.of(request) or "")[:_SEARCH_CHARACTERS].casefold(),
            after=_AFTER.of(request) or "",
            limit=_LIMIT.required(request),
        )


async def page_of(names: Iterable[str], page: ListPage, turns: Turns) -> tuple[list[str], int]:
    """The names of a page and one more if there is one, and how many match at all."""
    found: list[str] = []
    for name in names:
        await turns.take()
        if page.search in name.casefold():
            found.append(name)
    found.sort()
    start = bisect_right(found, page.after) if page.after else 0
    return found[start : start + page.limit + 1], len(found)


def answer(items: Sequence[Any], page: ListPage, total: int) -> Response:  # Any: JSON
    """A page of items, of which the caller has found one more than the page has."""
    return json_response(
        {"items": list(items[: page.limit]), "more": len(items) > page.limit, "total": total}
    )


class Listings:
    """Lists tenants, namespaces and topics."""

    def __init__(self, broker: BrokerService, callers: Callers) -> None:
        self._broker = broker
        self._callers = callers

    def routes(self) -> Iterable[Route]:
        """The routes of this resource."""
        return (
            get(BASE + "/tenants", self.tenants, OWN, *PAGE, answer=TenantPage),
            get(BASE + "/namespaces/{tenant}", self.namespaces, OWN, *PAGE, answer=NamespacePage),
            get(
                BASE + "/topics/{tenant}/{namespace}",
                self.topics,
                OWN,
                *PAGE,
                _SYSTEM_TOO,
                answer=TopicPage,
            ),
        )

    async def tenants(self, request: Request) -> Response:
        """Return tenants with their number of namespaces."""
        page, caller = ListPage.of(request), self._callers.caller_of(request)
        names = await self._broker.resources.tenants.list()
        if not await self._callers.may(caller, Action.LIST_TENANTS, AccessTarget()):
            names = [name for name in names if await self._sees_tenant(caller, name)]
        shown, total = await page_of(names, page, Turns())
        items = [
            {"name": name, "namespaces": len(await self._broker.resources.namespaces.list(name))}
            for name in shown
        ]
        return answer(items, page, total)

    async def _sees_tenant(self, caller: Caller, tenant: str) -> bool:
        if await self._callers.may(caller, Action.LIST_NAMESPACES, AccessTarget(tenant=tenant)):
            return True
        namespaces = await self._broker.resources.namespaces.list(tenant)
        for each in namespaces[:_SCANNED_NAMESPACES]:
            if await self._callers.sees(caller, each):
                return True
        return False

    async def namespaces(self, request: Request) -> Response:
        """Return namespaces with their number of topics."""
        page, caller = ListPage.of(request), self._callers.caller_of(request)
        tenant = tenant_of(request)
        found = await self._broker.resources.namespaces.list(tenant)
        if not await self._callers.may(caller, Action.LIST_NAMESPACES, AccessTarget(tenant=tenant)):
            found = [each for each in found if await self._callers.sees(caller, each)]
        by_name = {each.local_name: each for each in found}
        shown, total = await page_of(by_name, page, Turns())
        items = []
        for name in shown:
            topics = await self._broker.topics.list_topics(by_name[name])
            items.append({"name": name, "topics": len(topics)})
        return answer(items, page, total)

    async def topics(self, request: Request) -> Response:
        """Return topics with their rates, backlog and clients; `system=true` for all."""
        page, caller = ListPage.of(request), self._callers.caller_of(request)
        namespace = namespace_of(request)
        target = AccessTarget.of_namespace(namespace)
        sees_all = await self._callers.may(caller, Action.GET_TOPICS, target)
        if not sees_all and not await self._callers.sees(caller, namespace):
            raise HttpError(HTTPStatus.FORBIDDEN, f"no right in {namespace}")
        await require_namespace(self._broker, namespace, NOT_THERE)
        turns = Turns()
        partitions = dict.fromkeys(await self._broker.topics.partitioned.names(namespace), 0)
        names = dict.fromkeys(partitions)
        includes_system = _SYSTEM_TOO.of(request)
        for full in await self._broker.topics.list_topics(
            namespace, includes_system=includes_system
        ):
            await turns.take()
            base = _base_of(full)
            if base not in partitions:
                names[full] = None
        if not sees_all:
            names = dict.fromkeys([name for name in names if await self._may_look(caller, name)])
        shown, total = await page_of(names, page, turns)
        items = [await self._line(name, turns, is_partitioned=name in partitions) for name in shown]
        return answer(items, page, total)

    async def _may_look(self, caller: Caller, name: str) -> bool:
        target = AccessTarget.of_topic(TopicName.parse(name))
        return await self._callers.may(caller, Action.LOOKUP, target)

    async def _line(
        self, full: str, turns: Turns, *, is_partitioned: bool
    ) -> dict[str, Any]:  # Any: JSON
        name = TopicName.parse(full)
        count = await self._broker.topics.partitioned.count(name) if is_partitioned else 0
        parts = [name.partition(index) for index in range(count)] if count else [name]
        loaded = [
            topic for each in parts if (topic := self._broker.topics.loaded(each)) is not None
        ]
        line: dict[str, Any] = {"name": full, "partitions": count, "loaded": len(loaded)}
        for topic in loaded:
            await turns.take(100)
            await _add(line, topic, turns)
        return line


def _base_of(full: str) -> str:
    head, found, number = full.rpartition("-partition-")
    return head if found and number.isdecimal() else full


async def _add(line: dict[str, Any], topic: Topic, turns: Turns) -> None:  # Any: JSON
    stats = await topic.stats_in_turns(turns)
    subscriptions = stats.subscriptions.values()
    consumers = sum(len(each.consumers) for each in subscriptions)
    for name, value in (
        ("messageInRate", stats.message_in_rate),
        ("messageOutRate", stats.message_out_rate),
        ("backlog", sum(each.backlog_entries for each in subscriptions)),
        ("storageBytes", stats.storage_bytes),
        ("producers", len(stats.producers)),
        ("consumers", consumers),
    ):
        line[name] = line.get(name, 0) + value
    line["subscriptions"] = max(line.get("subscriptions", 0), len(stats.subscriptions))
    standing = {each for one in subscriptions for each in one.standstill}
    line["standing"] = sorted({*line.get("standing", ()), *standing})
