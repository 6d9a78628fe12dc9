"""`PolicyCopies`: the copies of one namespace's topic policies, by which topics are served (edge).

They are in the metadata store: those for this cluster in its own, those for all clusters in the one
that clusters share. The log says what they should be.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping

from pulsar_py.common.names import NamespaceName, TopicName
from pulsar_py.metadata.documents import TopicPolicies
from pulsar_py.metadata.resources import Resources, TopicPoliciesResources
from pulsar_py.server.change_events.event_decoder import LoggedEvent
from pulsar_py.server.policies.policy_events import PolicyEvent

Key = tuple[bool, TopicName]
"""Of a copy: whether it is for all clusters, and the topic."""


class PolicyCopies:
    """The copies of the topics of one namespace."""

    def __init__(self, namespace: NamespaceName, resources: Resources) -> None:
        self._namespace = namespace
        self._resources = resources

    def of(self, *, is_global: bool) -> TopicPoliciesResources:
        """The copies for this cluster, or those for all clusters."""
        resources = self._resources
        return resources.global_topic_policies if is_global else resources.topic_policies

    async def known(self) -> list[Key]:
        """Which there are.

        Raises:
            MetadataError: They can't be listed now.
        """
        found: list[Key] = []
        for is_global in (False, True):
            topics = await self.of(is_global=is_global).list(self._namespace)
            found += [(is_global, topic) for topic in topics]
        return found

    async def apply(self, event: PolicyEvent) -> None:
        """Make a copy what an event says.

        Raises:
            MetadataError: It can't be written now.
        """
        copies, document = self.of(is_global=event.is_global), event.document
        if document is None:
            await copies.delete(event.topic)
        else:
            policies = TopicPolicies(document)
            await copies.update_or_create(event.topic, lambda _: policies)

    async def drop_outdated(
        self, known: list[Key], pending: MutableMapping[str, LoggedEvent]
    ) -> None:
        """Finish removals that were cut short; leave global copies that are newer than the log.

        `pending` are the last events of each key of the whole log; those that do not count go.

        Raises:
            MetadataError: The store can't be read or written now.
        """
        for is_global, topic in known:
            key = PolicyEvent(topic, is_global, None).key
            logged, copies = pending.get(key), self.of(is_global=is_global)
            if not is_global and logged is None:
                await copies.delete(topic)
            elif (
                is_global
                and logged is not None
                and await copies.modified_millis(topic) > logged.published_millis
            ):
                del pending[key]


def without_event(known: list[Key], pending: Mapping[str, LoggedEvent]) -> list[Key]:
    """The copies that a log lacks."""
    return [key for key in known if PolicyEvent(key[1], key[0], None).key not in pending]
