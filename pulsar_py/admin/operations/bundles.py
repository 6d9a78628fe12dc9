"""REST resource that splits bundles, and lists a bundle's topics with their hash positions.

A split is carried out by the bundle's owner; others send the caller there. `LARGEST` and `HOT` in
place of a range mean the bundle with the most topics, and that with the most traffic, of those that
this broker owns.

Source: NamespacesBase.internalSplitNamespaceBundleAsync, NamespaceService.splitAndOwnBundle.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from http import HTTPStatus
from typing import Final, cast

from pulsar_py.admin.declared import Body, Flag, Long, Text, Texts
from pulsar_py.admin.http_messages import (
    NO_CONTENT,
    HttpError,
    RedirectError,
    Request,
    Response,
)
from pulsar_py.admin.resources.namespaces import NAMESPACE
from pulsar_py.admin.resources.requests import namespace_of
from pulsar_py.admin.resources.topic_access import is_sent_here, require_namespace
from pulsar_py.admin.resources.topic_lists import list_response
from pulsar_py.admin.router import Route, get, put
from pulsar_py.common.loops.work import NAMES_A_TURN, in_turns
from pulsar_py.common.names import NamespaceName
from pulsar_py.server.broker import BrokerService
from pulsar_py.server.namespaces.bundles import bundle_range, topic_hash
from pulsar_py.server.namespaces.splitting import ALGORITHMS
from pulsar_py.server.security.actions import Action
from pulsar_py.server.topics.registry import TopicListMode

LARGEST: Final = "LARGEST"
HOT: Final = "HOT"

_RANGE: Final = re.compile(r"0x[0-9a-fA-F]{8}_0x[0-9a-fA-F]{8}")
_BUNDLE: Final = NAMESPACE + "/{bundle}"

_POSITIONS: Final = Body(cast("type[list[int] | int]", list[Long] | Long), "splitBoundaries")
_ALGORITHM: Final = Text("splitAlgorithmName")
_UNLOAD: Final = Flag("unload")
_TOPICS: Final = Texts("topics")


class BundleOperations:
    """Splits bundles and looks into them."""

    def __init__(self, broker: BrokerService) -> None:
        self._broker = broker

    def routes(self) -> Iterable[Route]:
        """The routes of this resource."""
        return (
            put(
                _BUNDLE + "/split",
                self.split,
                Action.UNLOAD_NAMESPACE,
                _POSITIONS,
                _ALGORITHM,
                _UNLOAD,
            ),
            get(
                _BUNDLE + "/topicHashPositions",
                self.hash_positions,
                Action.DELETE_BUNDLE,
                _TOPICS,
                answer="HashPositions",
                errors=(HTTPStatus.TOO_MANY_REQUESTS,),
            ),
        )

    async def split(self, request: Request) -> Response:
        """Cut a bundle in two, or at the hashes in the body; clients stay connected.

        With `unload` the topics of the new bundles are closed afterwards, and any broker may take
        them.
        """
        namespace = namespace_of(request)
        positions = _positions_of(request)
        await require_namespace(self._broker, namespace)
        bundle = await self._bundle(namespace, request.path["bundle"])
        algorithm = _ALGORITHM.of(request) or ""
        if algorithm and algorithm not in ALGORITHMS:
            raise HttpError(
                HTTPStatus.PRECONDITION_FAILED,
                "Unsupported namespace bundle split algorithm, supported algorithms are "
                f"[{', '.join(ALGORITHMS)}]",
            )
        await self._require_owned(namespace, bundle)
        await self._broker.bundle_moves.split_here(
            namespace,
            bundle,
            unloads_parts=_UNLOAD.of(request),
            algorithm=algorithm,
            positions=positions,
        )
        return NO_CONTENT

    async def hash_positions(self, request: Request) -> Response:
        """Return the hashes of a bundle's topics, or of those that the parameter `topics` names."""
        namespace = namespace_of(request)
        await require_namespace(self._broker, namespace)
        bundle = await self._bundle(namespace, request.path["bundle"])
        wanted = frozenset(_TOPICS.of(request))
        lower, upper = bundle_range(bundle)

        async def positions() -> dict[str, int]:
            found = {}
            names = await self._broker.topics.list_topics(namespace, TopicListMode.ALL)
            async for some in in_turns(names, NAMES_A_TURN):
                for name in some:
                    if lower <= topic_hash(name) < upper and (not wanted or name in wanted):
                        found[name] = topic_hash(name)
            return found

        return await list_response(
            self._broker,
            f"{namespace}/{bundle}",
            positions,
            lambda found: {
                "namespace": str(namespace),
                "bundle": bundle,
                "topicHashPositions": found,
            },
        )

    async def _bundle(self, namespace: NamespaceName, text: str) -> str:
        """The bundle that a path means."""
        if text in {LARGEST, HOT}:
            return await self._extreme_bundle(namespace, text)
        if not _RANGE.fullmatch(text):
            raise HttpError(HTTPStatus.PRECONDITION_FAILED, f"Invalid bundle range: {text}")
        bundles = await self._broker.namespaces.bundles_of(namespace)
        if text.lower() not in bundles.names:
            lower = int(text.partition("_")[0], 16)
            raise HttpError(
                HTTPStatus.PRECONDITION_FAILED,
                f"Invalid boundaries of bundle {namespace}/{text}. "
                f"Expected {namespace}/{bundles.bundle_at(lower)}",
            )
        return text.lower()

    async def _extreme_bundle(self, namespace: NamespaceName, which: str) -> str:
        owned = [
            bundle
            for owner, bundle in self._broker.namespaces.owned_bundles()
            if owner == namespace
        ]
        if not owned:
            raise HttpError(
                HTTPStatus.PRECONDITION_FAILED, f"this broker owns no bundle of {namespace}"
            )
        content = await self._broker.bundle_moves.content_of(namespace)
        if which == LARGEST:
            return max(owned, key=lambda each: len(content.get(each, ())))
        return max(owned, key=lambda each: sum(flow for _, flow in content.get(each, ())))

    async def _require_owned(self, namespace: NamespaceName, bundle: str) -> None:
        """Own a bundle if nobody does and a lookup would not lead elsewhere.

        Raises:
            RedirectError: Another broker does, or is to be asked.
        """
        namespaces = self._broker.namespaces
        if namespaces.owns_bundle(namespace, bundle):
            return
        located = await namespaces.locate_bundle(namespace, bundle, authoritative=is_sent_here())
        owner = located.addresses.default
        url = owner.http_url or owner.http_url_tls
        if not namespaces.owns_bundle(namespace, bundle) and url is not None:
            raise RedirectError(url, is_authoritative=located.is_authoritative)


def _positions_of(request: Request) -> list[int]:
    """The hashes in the body: a list of whole numbers, or none."""
    value = _POSITIONS.of(request)
    if value is None:
        return []
    items = value if isinstance(value, list) else [value]
    return [each or 0 for each in items]
