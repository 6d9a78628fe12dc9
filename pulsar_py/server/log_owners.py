"""`ClusterLogOwners`: which kind of broker serves a namespace's policy events (edge).

A broker of ours says so in its report to the others; who does not is of another kind.
"""

from __future__ import annotations

from collections.abc import Collection

from pulsar_py.common.errors import ServiceNotReadyError
from pulsar_py.common.names import NamespaceName, TopicName
from pulsar_py.server.change_events.foreign_logs import LogOwner
from pulsar_py.server.elsewhere import Elsewhere, topic_path
from pulsar_py.server.load.broker_report import HEARTBEAT_TENANT
from pulsar_py.server.load.cluster_membership import ClusterMembership
from pulsar_py.server.namespaces.service import NamespaceService


class ClusterLogOwners:
    """The owners in the cluster of one broker."""

    def __init__(
        self, namespaces: NamespaceService, membership: ClusterMembership, elsewhere: Elsewhere
    ) -> None:
        self._namespaces = namespaces
        self._membership = membership
        self._elsewhere = elsewhere

    @property
    def _has_other_kinds(self) -> bool:
        return not all(each.is_ours for each in self._membership.directory.brokers.values())

    def namespaces(self) -> Collection[NamespaceName]:
        """Those of which this broker serves a part, while there are brokers of another kind."""
        if not self._has_other_kinds:
            return ()
        bundles = self._namespaces.owned_bundles()
        return dict.fromkeys(name for name, _ in bundles if name.tenant != HEARTBEAT_TENANT)

    async def owner_of(self, log: TopicName, *, settles: bool = False) -> LogOwner:
        """Who serves a log; where there are brokers of another kind, `settles` has it served.

        Raises:
            MetadataError: Ownership can't be read now.
            TopicNotFoundError: There is no such namespace.
            ServiceNotReadyError, OtherBrokerError: Nobody can serve it now.
        """
        owner = await self._owner_of(log)
        if owner is LogOwner.NOBODY and settles and self._has_other_kinds:
            await self._elsewhere.url_of(log)
            owner = await self._owner_of(log)
        return owner

    async def _owner_of(self, log: TopicName) -> LogOwner:
        if self._namespaces.is_owned(log):
            return LogOwner.THIS_BROKER
        bundle = await self._namespaces.bundle_of(log)
        owner = await self._namespaces.other_owner(log.namespace_name, bundle)
        if owner is None:
            return LogOwner.NOBODY
        if not self._has_other_kinds:
            return LogOwner.ANOTHER_OF_OURS
        url, url_tls = owner.default.http_url, owner.default.http_url_tls
        for each in self._membership.directory.brokers.values():
            is_it = (url and url == each.web_url) or (url_tls and url_tls == each.web_url_tls)
            if is_it and each.is_ours:
                return LogOwner.ANOTHER_OF_OURS
        return LogOwner.ANOTHER_KIND

    async def remove_there(self, log: TopicName, topic: TopicName) -> None:
        """Have the broker of ours that serves a log remove all policies of a topic.

        Raises:
            ServiceNotReadyError: This one serves it by now, or nobody does.
            OtherBrokerError: It refused, or could not be reached.
            MetadataError, TopicNotFoundError: As `owner_of`.
        """
        path = f"{topic_path(topic)}/policies"
        if await self._elsewhere.ask_owner(log, "DELETE", path) is None:
            raise ServiceNotReadyError(f"{log} is served here by now; try again")
