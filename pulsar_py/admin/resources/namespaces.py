"""REST resource of namespaces: list, create, delete, bundles, topics, unload.

Source: NamespacesBase in Pulsar's broker.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from typing import Any, Final

from pulsar_py.admin.declared import Body, Flag, Text
from pulsar_py.admin.http_messages import (
    NO_CONTENT,
    HttpError,
    RedirectError,
    Request,
    Response,
    json_response,
)
from pulsar_py.admin.json_values import read_int, read_object, read_texts
from pulsar_py.admin.resources.given_policies import given_policies
from pulsar_py.admin.resources.requests import namespace_of, tenant_of
from pulsar_py.admin.resources.topic_access import NOT_THERE, broker_id_of, require_namespace
from pulsar_py.admin.resources.topic_lists import list_response
from pulsar_py.admin.router import Route, delete, get, put
from pulsar_py.common.errors import (
    MetadataExistsError,
    MetadataNotFoundError,
    ServiceNotReadyError,
    TopicNotFoundError,
)
from pulsar_py.common.loops.concurrently import each_result
from pulsar_py.common.names import NamespaceName, TopicName
from pulsar_py.metadata.documents import equal_boundaries
from pulsar_py.metadata.policies_format import NAMESPACE_DEFAULTS
from pulsar_py.server.broker import BrokerService
from pulsar_py.server.bundle_moves import TRANSFER
from pulsar_py.server.load.broker_report import BrokerReport
from pulsar_py.server.namespaces.bundles import MAX_BUNDLES, Bundles
from pulsar_py.server.security.actions import Action
from pulsar_py.server.topics.partitions import TOPICS_AT_ONCE
from pulsar_py.server.topics.registry import TopicListMode

NAMESPACES: Final = "/admin/v2/namespaces"
NAMESPACE: Final = NAMESPACES + "/{tenant}/{namespace}"

MAX_ROUNDS: Final = 10
"""How often a deletion looks for topics: other brokers may make some until they know of it."""

_MODES: Final = {
    "": TopicListMode.PERSISTENT,
    "PERSISTENT": TopicListMode.PERSISTENT,
    "NON_PERSISTENT": TopicListMode.NON_PERSISTENT,
    "ALL": TopicListMode.ALL,
}
_MODE: Final = Text("mode", tuple(_MODES), "PERSISTENT")
_SYSTEM_TOO: Final = Flag("includeSystemTopic")
_FORCE: Final = Flag("force")
_DESTINATION: Final = Text("destinationBroker")
_TRANSFER: Final = Text(TRANSFER)
_POLICIES: Final = Body(dict[str, Any], "policies")


class Namespaces:
    """Operations on whole namespaces; `namespace_policies` has those on single policies."""

    def __init__(self, broker: BrokerService) -> None:
        self._broker = broker
        self._namespaces = broker.resources.namespaces

    def routes(self) -> Iterable[Route]:
        """The routes of this resource."""
        return (
            get(NAMESPACES + "/{tenant}", self.names, Action.LIST_NAMESPACES, answer=list[str]),
            get(NAMESPACE, self.policies, Action.READ_POLICY, answer="NamespacePoliciesAnswer"),
            put(NAMESPACE, self.create, Action.CREATE_NAMESPACE, _POLICIES),
            delete(NAMESPACE, self.delete, Action.DELETE_NAMESPACE, _FORCE),
            get(
                NAMESPACE + "/topics",
                self.topics,
                Action.GET_TOPICS,
                _MODE,
                _SYSTEM_TOO,
                answer=list[str],
                errors=(HTTPStatus.TOO_MANY_REQUESTS,),
            ),
            get(NAMESPACE + "/bundles", self.bundles, Action.GET_BUNDLE, answer="BundlesAnswer"),
            put(NAMESPACE + "/unload", self.unload, Action.UNLOAD_NAMESPACE),
            put(
                NAMESPACE + "/{bundle}/unload",
                self.unload_bundle,
                Action.UNLOAD_NAMESPACE,
                _DESTINATION,
                _TRANSFER,
            ),
            delete(NAMESPACE + "/{bundle}", self.delete_bundle, Action.DELETE_BUNDLE),
        )

    async def names(self, request: Request) -> Response:
        """Return all namespaces of a tenant as `tenant/namespace`."""
        tenant = tenant_of(request)
        if await self._broker.resources.tenants.get(tenant) is None:
            raise HttpError(HTTPStatus.NOT_FOUND, "Tenant not found")
        return json_response([str(name) for name in await self._namespaces.list(tenant)])

    async def policies(self, request: Request) -> Response:
        """Return all policies of a namespace."""
        namespace = namespace_of(request)
        policies = await require_namespace(self._broker, namespace, NOT_THERE)
        answer = {
            **NAMESPACE_DEFAULTS,
            "is_allow_auto_update_schema": self._broker.config.isAllowAutoUpdateSchemaEnabled,
            **policies.json,
            "bundles": await self._bundles_json(namespace),
        }
        return json_response(answer)

    async def _bundles_json(self, namespace: NamespaceName) -> dict[str, object]:
        bundles = await self._broker.namespaces.bundles_of(namespace)
        boundaries = [f"0x{boundary:08x}" for boundary in bundles.boundaries]
        return {"boundaries": boundaries, "numBundles": len(boundaries) - 1}

    async def create(self, request: Request) -> Response:
        """Create a namespace with the policies in the body."""
        namespace = namespace_of(request)
        fields = _POLICIES.of(request) or {}
        tenant = await self._broker.resources.tenants.get(namespace.tenant)
        if tenant is None:
            raise HttpError(HTTPStatus.NOT_FOUND, "Tenant does not exist")
        if await self._namespaces.get(namespace) is not None:
            raise HttpError(HTTPStatus.CONFLICT, "Namespace already exists")
        await self._check_count(namespace)
        clusters = read_texts(fields.get("replication_clusters"), "replication_clusters")
        if unknown := set(clusters or ()) - set(tenant.allowed_clusters or ()):
            raise HttpError(
                HTTPStatus.FORBIDDEN,
                f"Cluster [{', '.join(sorted(unknown))}] is not in the list of allowed clusters "
                f"list for tenant [{namespace.tenant}]",
            )
        boundaries = self._read_boundaries(read_object(fields.get("bundles"), "bundles") or {})
        given = {name: value for name, value in fields.items() if name != "bundles"}
        given["replication_clusters"] = clusters or [self._broker.config.clusterName]
        policies = given_policies(given).replace(boundaries=boundaries)
        try:
            await self._namespaces.create_with_bundles(namespace, policies, len(boundaries) - 1)
        except MetadataExistsError:
            raise HttpError(HTTPStatus.CONFLICT, "Namespace already exists") from None
        return NO_CONTENT

    async def _check_count(self, namespace: NamespaceName) -> None:
        limit = self._broker.config.maxNamespacesPerTenant
        if 0 < limit <= len(await self._namespaces.list(namespace.tenant)):
            raise HttpError(
                HTTPStatus.PRECONDITION_FAILED,
                f"Exceed the maximum number of namespace in tenant :{namespace.tenant}",
            )

    def _read_boundaries(self, fields: dict[str, Any]) -> tuple[int, ...]:  # Any: parsed JSON
        """The bundles of a new namespace; an invalid count is replaced by the default."""
        boundaries = read_texts(fields.get("boundaries"), "boundaries")
        if boundaries:
            if len(boundaries) > MAX_BUNDLES + 1:
                raise HttpError(
                    HTTPStatus.BAD_REQUEST,
                    f"{len(boundaries) - 1} bundles: at most {MAX_BUNDLES} are allowed",
                )
            try:
                return Bundles(tuple(int(text, 16) for text in boundaries)).boundaries
            except ValueError:
                raise HttpError(
                    HTTPStatus.BAD_REQUEST,
                    "Input bundles do not cover the whole hash range. "
                    f"first:{boundaries[0]}, last:{boundaries[-1]}",
                ) from None
        count = read_int(fields.get("numBundles"), "numBundles")
        if count is None or not 0 < count <= MAX_BUNDLES:
            count = self._broker.config.defaultNumberOfNamespaceBundles
        return equal_boundaries(count)

    async def delete(self, request: Request) -> Response:
        """Delete a namespace; with `force` its topics, too, if that is allowed."""
        namespace = namespace_of(request)
        is_forced = _FORCE.of(request)
        if is_forced and not self._broker.config.forceDeleteNamespaceAllowed:
            raise HttpError(
                HTTPStatus.METHOD_NOT_ALLOWED, "Broker doesn't allow forced deletion of namespaces"
            )
        await require_namespace(self._broker, namespace, f"Namespace {namespace} does not exist.")
        await delete_namespace(self._broker, namespace, force=is_forced)
        return NO_CONTENT

    async def topics(self, request: Request) -> Response:
        """Return the full names of topics; partitions are listed one by one."""
        namespace = namespace_of(request)
        mode = _MODES[_MODE.of(request) or "PERSISTENT"]
        await require_namespace(self._broker, namespace, NOT_THERE)
        return await list_response(
            self._broker,
            f"{namespace}/{mode.name}",
            partial(
                self._broker.topics.list_topics,
                namespace,
                mode,
                includes_system=_SYSTEM_TOO.of(request),
            ),
        )

    async def bundles(self, request: Request) -> Response:
        """Return the bundles of the namespace."""
        namespace = namespace_of(request)
        await require_namespace(self._broker, namespace, NOT_THERE)
        return json_response(await self._bundles_json(namespace))

    async def unload(self, request: Request) -> Response:
        """Close all topics; clients reconnect by themselves."""
        namespace = namespace_of(request)
        await require_namespace(self._broker, namespace)
        await self._broker.elsewhere.unload_bundles(namespace)
        await self._broker.namespaces.unload_namespace(namespace)
        return NO_CONTENT

    async def unload_bundle(self, request: Request) -> Response:
        """Close the topics of one bundle; `destinationBroker` names who shall take it."""
        namespace, bundle = await self._bundle(request)
        destination = self._destination(request, f"{namespace}/{bundle}")
        owner = await self._broker.namespaces.other_owner(namespace, bundle)
        url = None if owner is None else owner.default.http_url or owner.default.http_url_tls
        if url is not None:
            broker_id = None if destination is None else destination.broker_id
            raise RedirectError(url, query={"destinationBroker": None, TRANSFER: broker_id})
        if destination is None or destination.broker_id == broker_id_of(self._broker):
            await self._broker.namespaces.unload_bundle(namespace, bundle)
        else:
            await self._broker.bundle_moves.transfer(namespace, bundle, destination)
        return NO_CONTENT

    def _destination(self, request: Request, bundle: str) -> BrokerReport | None:
        """The broker that shall take a bundle; None if any may.

        Only the leader is asked by clients who take the bundle next, so it has to know.

        Raises:
            RedirectError: Another broker leads.
            HttpError: 409 if there is no such broker.
        """
        chosen = _TRANSFER.of(request)  # of the leader, which has chosen
        wanted = chosen or _DESTINATION.of(request)
        membership = self._broker.membership
        if not wanted or membership is None or not membership.is_joined:
            return None
        report = membership.directory.brokers.get(wanted)
        if report is None:
            raise HttpError(HTTPStatus.CONFLICT, f"{wanted} is no broker of this cluster")
        if chosen:
            return report
        if not membership.is_leader:
            leader = membership.directory.brokers.get(membership.leader_id or "")
            url = None if leader is None else self._broker.other_brokers.url_of(leader)
            if url is None:
                raise ServiceNotReadyError("no broker leads the cluster now; try again")
            raise RedirectError(url, is_authoritative=False)
        membership.intend(bundle, wanted)
        return report

    async def delete_bundle(self, request: Request) -> Response:
        """Give up an empty bundle; DELETE of a policy that can't be deleted ends here, too."""
        namespace, bundle = await self._bundle_here(request)
        bundles = await self._broker.namespaces.bundles_of(namespace)
        topics = await self._broker.topics.list_topics(namespace)
        if any(bundles.bundle_of(name) == bundle for name in topics):
            raise HttpError(HTTPStatus.CONFLICT, "Cannot delete non empty bundle")
        await self._broker.namespaces.unload_bundle(namespace, bundle)
        return NO_CONTENT

    async def _bundle_here(self, request: Request) -> tuple[NamespaceName, str]:
        """The bundle of a request, which no other broker has.

        Raises:
            RedirectError: Another one has it.
        """
        namespace, bundle = await self._bundle(request)
        owner = await self._broker.namespaces.other_owner(namespace, bundle)
        if owner is not None:
            url = owner.default.http_url or owner.default.http_url_tls
            if url is not None:
                raise RedirectError(url)
        return namespace, bundle

    async def _bundle(self, request: Request) -> tuple[NamespaceName, str]:
        namespace = namespace_of(request)
        await require_namespace(self._broker, namespace)
        bundle = request.path["bundle"]
        if bundle not in (await self._broker.namespaces.bundles_of(namespace)).names:
            raise HttpError(HTTPStatus.PRECONDITION_FAILED, f"Invalid bundle range: {bundle}")
        return namespace, bundle


async def delete_namespace(broker: BrokerService, namespace: NamespaceName, *, force: bool) -> None:
    """Delete a namespace; with `force` with its topics, even with clients connected.

    From the beginning nothing is made in it any more, whoever connects. That is stored: after a
    crash, or an error, it stays like that until it is deleted again. Who deletes it meanwhile
    waits, and then finds that it is gone.

    Raises:
        HttpError: 409 if it has topics, and `force` is not set; 404 if somebody else was faster.
        ServiceNotReadyError: Topics came as fast as they went.
    """
    async with broker.namespaces.deletion(namespace):
        await _delete_namespace(broker, namespace, force=force)


async def _delete_namespace(
    broker: BrokerService, namespace: NamespaceName, *, force: bool
) -> None:
    is_kept = not force and await _has_topics(broker, namespace)
    if not is_kept:
        await _set_deleted(broker, namespace, is_deleted=True)
        is_kept = not force and await _has_topics(broker, namespace)  # made a moment ago
        if is_kept:
            await _set_deleted(broker, namespace, is_deleted=False)
    if is_kept:
        raise HttpError(HTTPStatus.CONFLICT, "Cannot delete non empty namespace")
    async with broker.topic_policies.deleting(namespace):
        for _ in range(MAX_ROUNDS):
            if not await _delete_topics(broker, namespace):
                break
        else:
            raise ServiceNotReadyError(f"topics of {namespace} come back; delete it again")
        await broker.topics.end_deletions(namespace)
    await broker.elsewhere.unload_bundles(namespace)
    await broker.namespaces.unload_namespace(namespace)
    await broker.resources.namespaces.delete(namespace)


async def _has_topics(broker: BrokerService, namespace: NamespaceName) -> bool:
    topics = broker.topics
    return bool(await topics.list_topics(namespace) or await topics.partitioned.names(namespace))


async def _set_deleted(
    broker: BrokerService, namespace: NamespaceName, *, is_deleted: bool
) -> None:
    try:
        await broker.resources.namespaces.update(
            namespace, lambda policies: policies.replace(is_deleted=is_deleted)
        )
    except MetadataNotFoundError:
        reason = f"Namespace {namespace} does not exist."
        raise HttpError(HTTPStatus.NOT_FOUND, reason) from None


async def _delete_topics(broker: BrokerService, namespace: NamespaceName) -> bool:
    """Delete all topics that there are now; returns whether there were any."""
    topics = broker.topics
    partitioned = await topics.partitioned.names(namespace)
    for text in partitioned:
        with suppress(TopicNotFoundError):
            await topics.partitioned.delete(TopicName.parse(text), force=True)
    plain = await topics.list_topics(namespace, includes_system=True)

    async def delete_plain(text: str) -> None:
        with suppress(TopicNotFoundError):
            await topics.delete(TopicName.parse(text), force=True)

    await each_result(delete_plain, plain, at_once=TOPICS_AT_ONCE)
    return bool(partitioned or plain)
