"""REST resource of how a namespace's ledgers are kept: their quorums, and the bookies they are on.

`persistence` is a policy like others, which all clusters share. `persistence/bookieAffinity` is one
cluster's, so it is kept with its bundles in `LocalPolicies`. Both count for the next ledgers; those
that exist stay as they are.

Before the first call that sets it, a namespace's affinity is answered 404, and after a DELETE with
200 and an empty body, as Apache Pulsar does for a namespace nobody has used.

Source: NamespacesBase in Pulsar's broker; PersistencePolicies, BookieAffinityGroupData.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from http import HTTPStatus
from typing import Any, Final

from pulsar_py.admin.http_messages import (
    NO_CONTENT,
    HttpError,
    Request,
    Response,
    UnreadableBodyError,
    optional_json_response,
)
from pulsar_py.admin.resources.namespaces import NAMESPACE
from pulsar_py.admin.resources.requests import namespace_of, read_int, read_object, read_text
from pulsar_py.admin.resources.topic_access import NOT_THERE, require_namespace
from pulsar_py.admin.router import Route, delete, get, post
from pulsar_py.common.names import NamespaceName
from pulsar_py.metadata.documents import LocalPolicies, NamespacePolicies
from pulsar_py.server.broker import BrokerService
from pulsar_py.server.security.actions import Action

_PERSISTENCE: Final = NamespacePolicies.persistence.json_name
_AFFINITY: Final = LocalPolicies.bookie_affinity.json_name
_GROUPS: Final = ("bookkeeperAffinityGroupPrimary", "bookkeeperAffinityGroupSecondary")

_DEFAULT_QUORUM: Final = 2
_NO_RATE: Final = -1.0


class Persistence:
    """Reads, sets and removes both of a namespace."""

    def __init__(self, broker: BrokerService) -> None:
        self._broker = broker
        self._namespaces = broker.resources.namespaces

    def routes(self) -> Iterable[Route]:
        """The routes of this resource."""
        template = f"{NAMESPACE}/persistence"
        yield get(template, self.show, Action.READ_POLICY)
        yield post(template, self.set, Action.WRITE_POLICY)
        yield delete(template, self.remove, Action.WRITE_POLICY)
        # Which machines are whose is for super-users to say, and to see.
        needed = Action.WRITE_POLICY_OF_BROKERS
        yield get(f"{template}/bookieAffinity", self.show_affinity, needed)
        yield post(f"{template}/bookieAffinity", self.set_affinity, needed)
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
        """Go back to the broker's settings."""
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
        fields = read_object(request.json())
        value = None
        if fields is not None:
            texts = {name: read_text(fields.get(name), name) for name in _GROUPS}
            value = {name: text for name, text in texts.items() if text is not None}
        await self._store_affinity(request, value)
        return NO_CONTENT

    async def remove_affinity(self, request: Request) -> Response:
        """Let them be on all bookies."""
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
    fields = read_object(request.json())
    if fields is None:
        raise HttpError(HTTPStatus.BAD_REQUEST, "persistence policies should not be null")
    value: dict[str, Any] = {}
    for name in ("bookkeeperEnsemble", "bookkeeperWriteQuorum", "bookkeeperAckQuorum"):
        size = read_int(fields.get(name, _DEFAULT_QUORUM), name)
        value[name] = size or 0
    value["managedLedgerMaxMarkDeleteRate"] = _rate(fields.get("managedLedgerMaxMarkDeleteRate"))
    storage_class = read_text(fields.get("managedLedgerStorageClassName"))
    if storage_class is not None:
        value["managedLedgerStorageClassName"] = storage_class
    _check_quorums(value, broker)
    return value


def _rate(value: Any) -> float:  # Any: JSON
    if value is None:
        return _NO_RATE
    if isinstance(value, int | float | str) and not isinstance(value, bool):
        with contextlib.suppress(ValueError):
            return float(value)
    raise UnreadableBodyError(f"managedLedgerMaxMarkDeleteRate: {value!r:.100} is not a number")


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
