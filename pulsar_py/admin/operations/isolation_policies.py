"""REST resource of isolation policies (which brokers serve a namespace) and failure domains.

Both are kept for each cluster, and say which of its brokers take which bundles (`load.isolation`).

Source: ClustersBase in Pulsar's broker; NamespaceIsolationData, FailureDomainBody.
"""

from __future__ import annotations

from collections.abc import Iterable
from http import HTTPStatus
from typing import Final

from msgspec import Struct, field

from pulsar_py.admin.declared import Body, json_of
from pulsar_py.admin.http_messages import (
    EMPTY,
    NO_CONTENT,
    HttpError,
    Request,
    Response,
    json_response,
)
from pulsar_py.admin.operations.stored_documents import (
    Document,
    change_document,
    delete_document,
    read_document,
)
from pulsar_py.admin.resources.clusters import CLUSTER
from pulsar_py.admin.resources.topic_access import broker_id_of
from pulsar_py.admin.router import Route, delete, get, post
from pulsar_py.common.conditions import Pattern
from pulsar_py.common.linear_patterns import linear_pattern
from pulsar_py.common.names import is_valid_entity
from pulsar_py.metadata import paths
from pulsar_py.server.broker import BrokerService
from pulsar_py.server.security.actions import Action

_POLICIES: Final = CLUSTER + "/namespaceIsolationPolicies"
_DOMAINS: Final = CLUSTER + "/failureDomains"
_PARAMETERS: Final = ("min_limit", "usage_threshold")


class AutoFailover(Struct, frozen=True):
    """When the secondary brokers are used."""

    policy_type: str | None = None
    parameters: dict[str, str] = field(default_factory=dict)


class IsolationData(Struct, frozen=True):
    """Which namespaces are meant for which brokers, as regular expressions."""

    namespaces: list[str] = field(default_factory=list)
    primary: list[str] = field(default_factory=list)
    secondary: list[str] = field(default_factory=list)
    auto_failover_policy: AutoFailover = field(default_factory=AutoFailover)


class FailureDomainBody(Struct, frozen=True):
    """Brokers that may fail together."""

    brokers: list[str] = field(default_factory=list)


_DATA: Final = Body(IsolationData, "isolation policy")
_DOMAIN: Final = Body(FailureDomainBody, "failure domain")


class IsolationPolicies:
    """Keeps the isolation policies and failure domains of clusters."""

    def __init__(self, broker: BrokerService) -> None:
        self._broker = broker
        self._clusters = broker.resources.clusters
        self._store = broker.resources.configuration

    def routes(self) -> Iterable[Route]:
        """The routes of this resource."""
        one, domain = _POLICIES + "/{name}", _DOMAINS + "/{domain}"
        return (
            get(_POLICIES, self.all, Action.READ_CLUSTER, answer=dict[str, IsolationData]),
            get(
                _POLICIES + "/brokers",
                self.brokers,
                Action.READ_CLUSTER,
                answer="list[BrokerIsolation]",
            ),
            get(
                _POLICIES + "/brokers/{broker}",
                self.broker,
                Action.READ_CLUSTER,
                answer="BrokerIsolation",
            ),
            get(one, self.one, Action.READ_CLUSTER, answer=IsolationData),
            post(one, self.set, Action.WRITE_CLUSTER, _DATA),
            delete(one, self.remove, Action.WRITE_CLUSTER),
            get(_DOMAINS, self.domains, Action.READ_CLUSTER, answer=dict[str, FailureDomainBody]),
            get(domain, self.domain, Action.READ_CLUSTER, answer=FailureDomainBody),
            post(domain, self.set_domain, Action.WRITE_CLUSTER, _DOMAIN),
            delete(domain, self.remove_domain, Action.WRITE_CLUSTER, status=HTTPStatus.OK),
        )

    # --- isolation policies ----------------------------------------------------------------------

    async def all(self, request: Request) -> Response:
        """Return all policies of a cluster by name."""
        await self._require_cluster(request, HTTPStatus.NOT_FOUND)
        return json_response(await self._stored(request))

    async def one(self, request: Request) -> Response:
        """Return one policy."""
        cluster, name = request.path["cluster"], request.path["name"]
        await self._require_cluster(request, HTTPStatus.PRECONDITION_FAILED)
        found = (await self._stored(request)).get(name)
        if found is None:
            raise HttpError(
                HTTPStatus.NOT_FOUND,
                f"Cannot find NamespaceIsolationPolicy {name} for cluster {cluster}",
            )
        return json_response(found)

    async def set(self, request: Request) -> Response:
        """Store a policy under a name."""
        await self._require_cluster(request, HTTPStatus.PRECONDITION_FAILED)
        name = request.path["name"]
        data = _isolation_data(name, _DATA.of(request) or IsolationData())
        await change_document(self._store, self._path(request), lambda known: {**known, name: data})
        return NO_CONTENT

    async def remove(self, request: Request) -> Response:
        """Remove a policy; fine if there is none of that name."""
        await self._require_cluster(request, HTTPStatus.PRECONDITION_FAILED)
        name = request.path["name"]
        await change_document(
            self._store,
            self._path(request),
            lambda known: {each: data for each, data in known.items() if each != name},
        )
        return NO_CONTENT

    async def brokers(self, request: Request) -> Response:
        """Return the brokers of the cluster, each with the namespaces that it is meant for."""
        await self._require_cluster(request, HTTPStatus.PRECONDITION_FAILED)
        stored = await read_document(self._store, self._path(request)) or {}
        return json_response([_broker_data(broker_id_of(self._broker), stored)])

    async def broker(self, request: Request) -> Response:
        """Return the namespaces that one broker is meant for."""
        await self._require_cluster(request, HTTPStatus.PRECONDITION_FAILED)
        stored = await read_document(self._store, self._path(request)) or {}
        return json_response(_broker_data(request.path["broker"], stored))

    async def _require_cluster(self, request: Request, status: int) -> None:
        cluster = request.path["cluster"]
        if not await self._clusters.exists(cluster):
            raise HttpError(status, f"Cluster {cluster} does not exist.")

    async def _stored(self, request: Request) -> Document:
        stored = await read_document(self._store, self._path(request))
        if stored is None:
            cluster = request.path["cluster"]
            raise HttpError(
                HTTPStatus.NOT_FOUND,
                f"NamespaceIsolationPolicies for cluster {cluster} does not exist",
            )
        return stored

    def _path(self, request: Request) -> str:
        return paths.isolation_policies(request.path["cluster"])

    # --- failure domains -------------------------------------------------------------------------

    async def domains(self, request: Request) -> Response:
        """Return all failure domains of a cluster; none of one that does not exist."""
        parent = self._domains_path(request)
        found = {}
        for name in await self._store.children(parent):
            if (domain := await read_document(self._store, f"{parent}/{name}")) is not None:
                found[name] = domain
        return json_response(found)

    async def domain(self, request: Request) -> Response:
        """Return the brokers of one failure domain."""
        await self._require_cluster(request, HTTPStatus.PRECONDITION_FAILED)
        found = await read_document(self._store, self._domain_path(request))
        if found is None:
            raise HttpError(
                HTTPStatus.NOT_FOUND,
                f"Domain {request.path['domain']} for cluster {request.path['cluster']} "
                "does not exist",
            )
        return json_response(found)

    async def set_domain(self, request: Request) -> Response:
        """Store the brokers of a failure domain; a broker is in at most one."""
        await self._require_cluster(request, HTTPStatus.PRECONDITION_FAILED)
        brokers = (_DOMAIN.of(request) or FailureDomainBody()).brokers
        parent, name = self._domains_path(request), request.path["domain"]
        for other in await self._store.children(parent):
            known = await read_document(self._store, f"{parent}/{other}") or {}
            shared = set(brokers) & set(known.get("brokers") or ())
            if other != name and shared:
                raise HttpError(
                    HTTPStatus.CONFLICT, f"{min(shared)} is in the domain {other} already"
                )
        await change_document(
            self._store, self._domain_path(request), lambda _: {"brokers": brokers}
        )
        return NO_CONTENT

    async def remove_domain(self, request: Request) -> Response:
        """Delete a failure domain."""
        await self._require_cluster(request, HTTPStatus.PRECONDITION_FAILED)
        if not await delete_document(self._store, self._domain_path(request)):
            raise HttpError(
                HTTPStatus.NOT_FOUND,
                f"Domain-name {request.path['domain']} or cluster does not exist",
            )
        return EMPTY

    def _domains_path(self, request: Request) -> str:
        return paths.failure_domains(_valid(request.path["cluster"]))

    def _domain_path(self, request: Request) -> str:
        return f"{self._domains_path(request)}/{_valid(request.path['domain'])}"


def _valid(name: str) -> str:
    if not is_valid_entity(name):
        raise HttpError(HTTPStatus.PRECONDITION_FAILED, f"{name!r:.100} is not a valid name")
    return name


def _isolation_data(name: str, data: IsolationData) -> Document:
    """The body as NamespaceIsolationData.

    Raises:
        HttpError: 400 without namespaces, primary brokers or the parameters of the failover policy,
            or with a pattern that can't be read.
    """
    parameters = data.auto_failover_policy.parameters
    patterns = (*data.namespaces, *data.primary, *data.secondary)
    problem = ""
    if not data.namespaces or not data.primary:
        problem = "namespaces and primary are required"
    elif data.auto_failover_policy.policy_type != "min_available":
        problem = "auto_failover_policy with the policy_type min_available is required"
    elif missing := [each for each in _PARAMETERS if not parameters.get(each, "").isdigit()]:
        problem = f"the policy needs the number {missing[0]} among its parameters"
    elif bad := [each for each in patterns if _pattern(each) is None]:
        problem = (
            f"{bad[0]!r:.100} is not a regular expression of RE2, which has no look-around and no "
            "back references"
        )
    if problem:
        raise HttpError(
            HTTPStatus.BAD_REQUEST,
            f"Invalid format of input policy data. policy: {name}; {problem}",
        )
    return json_of(data)


def _pattern(text: str) -> Pattern | None:
    try:
        return linear_pattern(text)
    except ValueError:
        return None


def _broker_data(broker_id: str, policies: Document) -> Document:
    host = broker_id.partition(":")[0]
    found: Document = {"brokerName": broker_id, "namespaceRegex": [], "primary": False}
    for name, data in policies.items():
        is_primary, is_secondary = (
            any(
                (pattern := _pattern(each)) is not None
                and (pattern.fullmatch(host) or pattern.fullmatch(broker_id))
                for each in data.get(which) or ()
            )
            for which in ("primary", "secondary")
        )
        if is_primary or is_secondary:
            found["namespaceRegex"] += data["namespaces"]
            found["primary"] = found["primary"] or is_primary
            found["policyName"] = name
    return found
