"""REST resource of namespaces' persistence policies: quorums, and bookie affinity groups.

`persistence` is a policy like others, which all clusters share. `persistence/bookieAffinity` is one
cluster's, so it is kept with its bundles in `LocalPolicies`. Both count for the next ledgers; those
that exist stay as they are.

Before the first call that sets it, a namespace's affinity is answered 404, and after a DELETE with
200 and an empty body, as Apache Pulsar does for a namespace nobody has used.

Source: NamespacesBase in Pulsar's broker; PersistencePolicies, BookieAffinityGroupData.
"""

from __future__ import annotations

from collections.abc import Iterable
from http import HTTPStatus
from typing import Any, Final

from msgspec import Struct

from pulsar_py.admin.declared import Body, Int, json_of
from pulsar_py.admin.http_messages import (
    NO_CONTENT,
    HttpError,
    Request,
    Response,
    optional_json_response,
)
from pulsar_py.admin.resources.namespaces import NAMESPACE
from pulsar_py.admin.resources.requests import namespace_of
from pulsar_py.admin.resources.topic_access import NOT_THERE, require_namespace
from pulsar_py.admin.router import Route, delete, get, post
from pulsar_py.common.names import NamespaceName
from pulsar_py.metadata.documents import LocalPolicies, NamespacePolicies
from pulsar_py.server.broker import BrokerService
from pulsar_py.server.security.actions import Action

_PERSISTENCE: Final = NamespacePolicies.persistence.json_name
_AFFINITY: Final = LocalPolicies.bookie_affinity.json_name

_DEFAULT_QUORUM: Final = 2
_NO_RATE: Final = -1.0


class PersistenceBody(Struct, frozen=True, rename="camel"):
    """How many bookies an entry is written to, and how often cursors are stored."""

    bookkeeper_ensemble: Int = _DEFAULT_QUORUM
    bookkeeper_write_quorum: Int = _DEFAULT_QUORUM
    bookkeeper_ack_quorum: Int = _DEFAULT_QUORUM
    managed_ledger_max_mark_delete_rate: float = _NO_RATE
    managed_ledger_storage_class_name: str | None = None


class BookieAffinityBody(Struct, frozen=True, rename="camel"):
    """Groups of bookies, as names with commas between."""

    bookkeeper_affinity_group_primary: str | None = None
    bookkeeper_affinity_group_secondary: str | None = None


PERSISTENCE: Final = Body(PersistenceBody, "persistence policies")
_GROUPS: Final = Body(BookieAffinityBody, "groups of bookies")


class Persistence:
    """Reads, sets and removes a namespace's quorums and bookie affinity groups."""

    def __init__(self, broker: BrokerService) -> None:
        self._broker = broker
        self._namespaces = broker.resources.namespaces

    def routes(self) -> Iterable[Route]:
        """The routes of this resource."""
        template = f"{NAMESPACE}/persistence"
        yield get(
            template, self.show, Action.READ_POLICY, answer=PersistenceBody, may_be_empty=True
        )
        yield post(template, self.set, Action.WRITE_POLICY, PERSISTENCE)
        yield delete(template, self.remove, Action.WRITE_POLICY)
        # Which machines are whose is for super-users to say, and to see.
        needed = Action.WRITE_POLICY_OF_BROKERS
        yield get(
            f"{template}/bookieAffinity",
            self.show_affinity,
            needed,
            answer=BookieAffinityBody,
            may_be_empty=True,
        )
        yield post(f"{template}/bookieAffinity", self.set_affinity, needed, _GROUPS)
        yield delete(f"{template}/bookieAffinity", self.remove_affinity, needed)

    async def show(self, request: Request) -> Response:
        """Return the namespace's quorums, nothing if it has none."""
        policies = await require_namespace(self._broker, namespace_of(request), NOT_THERE)
        return optional_json_response(policies.json.get(_PERSISTENCE))

    async def set(self, request: Request) -> Response:
        """Set the quorums of the namespace's next ledgers."""
        namespace = namespace_of(request)
        value = read_persistence(request, self._broker)
        await require_namespace(self._broker, namespace, NOT_THERE)
        await self._store(namespace, value)
        return NO_CONTENT

    async def remove(self, request: Request) -> Response:
        """Remove the namespace's quorums, so that the broker's settings apply."""
        namespace = namespace_of(request)
        await require_namespace(self._broker, namespace, NOT_THERE)
        await self._store(namespace, None)
        return NO_CONTENT

    async def show_affinity(self, request: Request) -> Response:
        """Return the groups of bookies that the namespace is bound to."""
        namespace = namespace_of(request)
        await require_namespace(self._broker, namespace)
        local = await self._broker.resources.local_policies.get(namespace)
        if local is None or _AFFINITY not in local.json:
            raise HttpError(HTTPStatus.NOT_FOUND, "Namespace local-policies does not exist")
        return optional_json_response(local.json[_AFFINITY])

    async def set_affinity(self, request: Request) -> Response:
        """Bind the namespace's next ledgers to groups of bookies."""
        groups = _GROUPS.of(request)
        value = None
        if groups is not None:
            value = {name: text for name, text in json_of(groups).items() if text is not None}
        await self._store_affinity(request, value)
        return NO_CONTENT

    async def remove_affinity(self, request: Request) -> Response:
        """Let the namespace's next ledgers use all bookies."""
        await self._store_affinity(request, None)
        return NO_CONTENT

    async def _store(self, namespace: NamespaceName, value: Any) -> None:  # Any: JSON
        def change(policies: NamespacePolicies) -> NamespacePolicies:
            document = {name: each for name, each in policies.json.items() if name != _PERSISTENCE}
            if value is not None:
                document[_PERSISTENCE] = value
            return NamespacePolicies(document)

        await self._namespaces.update(namespace, change)

    async def _store_affinity(self, request: Request, value: Any) -> None:  # Any: JSON
        namespace = namespace_of(request)
        await require_namespace(self._broker, namespace)
        await self._namespaces.bundles_of(namespace)  # they are kept in the same document
        await self._broker.resources.local_policies.update_or_create(
            namespace,
            lambda known: LocalPolicies({**(known.json if known else {}), _AFFINITY: value}),
        )


def read_persistence(request: Request, broker: BrokerService) -> dict[str, Any]:  # Any: JSON
    """The body as PersistencePolicies, of a namespace or a topic.

    Raises:
        HttpError: 400 if there is none, or its quorums are more than the next larger one, less than
            1, or more than the settings `managedLedgerMax…` allow.
    """
    given = PERSISTENCE.of(request)
    if given is None:
        raise HttpError(HTTPStatus.BAD_REQUEST, "persistence policies should not be null")
    value = {name: each for name, each in json_of(given).items() if each is not None}
    _check_quorums(value, broker)
    return value


def _check_quorums(value: dict[str, Any], broker: BrokerService) -> None:  # Any: JSON
    config = broker.config
    ensemble = value["bookkeeperEnsemble"]
    write = value["bookkeeperWriteQuorum"]
    ack = value["bookkeeperAckQuorum"]
    for name, size, limit in (
        ("Bookkeeper-Ensemble", ensemble, config.managedLedgerMaxEnsembleSize),
        ("Bookkeeper-WriteQuorum", write, config.managedLedgerMaxWriteQuorum),
        ("Bookkeeper-AckQuorum", ack, config.managedLedgerMaxAckQuorum),
    ):
        if not 0 < size <= limit:
            raise HttpError(HTTPStatus.BAD_REQUEST, f"{name} must be <= {limit} and > 0.")
    if not ensemble >= write >= ack:
        raise HttpError(
            HTTPStatus.BAD_REQUEST,
            f"Bookkeeper Ensemble ({ensemble}) >= WriteQuorum ({write}) >= AckQuorum ({ack})",
        )
