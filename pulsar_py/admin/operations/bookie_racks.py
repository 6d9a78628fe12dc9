"""REST resource of bookies: it lists them, and reads and sets their racks.

The racks are kept where Apache Pulsar keeps them, and count when ledgers are placed by a broker of
a cluster. A standalone broker has no bookies.

Source: Bookies in Pulsar's broker.
"""

from __future__ import annotations

from collections.abc import Iterable
from http import HTTPStatus
from typing import Final

from msgspec import Struct

from pulsar_py.admin.declared import Body, Text, json_of
from pulsar_py.admin.http_messages import (
    NO_CONTENT,
    HttpError,
    Request,
    Response,
    json_response,
)
from pulsar_py.admin.operations.stored_documents import change_document, read_document
from pulsar_py.admin.router import Route, delete, get, post
from pulsar_py.metadata import paths
from pulsar_py.server.broker import BrokerService
from pulsar_py.server.security.actions import Action

BOOKIES: Final = "/admin/v2/bookies"
RACKS: Final = BOOKIES + "/racks-info"


class BookieRack(Struct, frozen=True):
    """Where a bookie stands."""

    rack: str | None = None
    hostname: str | None = None


Groups = dict[str, dict[str, object]]
"""Racks by group and bookie."""

_RACK: Final = Body(BookieRack, "rack")
_GROUP: Final = Text("group")


class BookieRacks:
    """Reads and changes the racks of bookies."""

    def __init__(self, broker: BrokerService) -> None:
        self._store = broker.resources.local

    def routes(self) -> Iterable[Route]:
        """The routes of this resource."""
        one, racks = RACKS + "/{bookie}", dict[str, dict[str, BookieRack]]
        return (
            get(BOOKIES + "/all", self.bookies, Action.READ_BROKERS, answer="BookiesAnswer"),
            get(RACKS, self.racks, Action.READ_BROKERS, answer=racks),
            get(one, self.rack, Action.READ_BROKERS, answer=BookieRack),
            post(one, self.set_rack, Action.WRITE_BROKERS, _RACK, _GROUP),
            delete(one, self.remove_rack, Action.WRITE_BROKERS),
        )

    async def bookies(self, request: Request) -> Response:  # noqa: ARG002
        """Return the ids of the bookies that can be read from."""
        parent = f"{paths.LEDGERS}/available"
        found = {
            *await self._store.children(parent),
            *await self._store.children(parent + "/readonly"),
        }
        return json_response(
            {"bookies": [{"bookieId": each} for each in sorted(found - {"readonly"})]}
        )

    async def racks(self, request: Request) -> Response:  # noqa: ARG002
        """Return the racks by group and bookie."""
        return json_response(await read_document(self._store, paths.BOOKIE_RACKS) or {})

    async def rack(self, request: Request) -> Response:
        """Return the rack of one bookie."""
        bookie = request.path["bookie"]
        for group in (await read_document(self._store, paths.BOOKIE_RACKS) or {}).values():
            if bookie in group:
                return json_response(group[bookie])
        raise _not_there(bookie)

    async def set_rack(self, request: Request) -> Response:
        """Set the rack of a bookie, in a group."""
        rack, group, bookie = _RACK.required(request), _GROUP.of(request), request.path["bookie"]
        if group is None:
            raise HttpError(HTTPStatus.PRECONDITION_FAILED, "the parameter group is required")
        stored = {name: text for name, text in json_of(rack).items() if text is not None}
        await change_document(
            self._store,
            paths.BOOKIE_RACKS,
            lambda known: {
                **_without(known, bookie),
                group: {**known.get(group, {}), bookie: stored},
            },
        )
        return NO_CONTENT

    async def remove_rack(self, request: Request) -> Response:
        """Remove a bookie from its group."""
        bookie = request.path["bookie"]
        known = await read_document(self._store, paths.BOOKIE_RACKS) or {}
        if not any(bookie in group for group in known.values()):
            raise _not_there(bookie)
        await change_document(
            self._store, paths.BOOKIE_RACKS, lambda known: _without(known, bookie)
        )
        return NO_CONTENT


def _without(known: Groups, bookie: str) -> Groups:
    """The groups that are left, without empty ones."""
    left = {
        name: {each: rack for each, rack in group.items() if each != bookie}
        for name, group in known.items()
    }
    return {name: group for name, group in left.items() if group}


def _not_there(bookie: str) -> HttpError:
    return HttpError(
        HTTPStatus.NOT_FOUND, f"Bookie rack placement configuration not found: {bookie}"
    )
