"""Namespaces of a broker: bundles, ownership, lookup, unload."""

from __future__ import annotations

from pulsar_py.common.names import NamespaceName, TopicName
from pulsar_py.server.namespaces.lookup import LocalAddresses, LookupResult


class NamespaceService:
    """Owns bundles for this broker and answers lookups."""

    def set_addresses(self, addresses: LocalAddresses) -> None:
        """The listeners are bound: lookups and ownership records name these from now on."""
        raise NotImplementedError

    async def lookup(
        self, name: TopicName, *, authoritative: bool = False, listener_name: str | None = None
    ) -> LookupResult:
        """Find or become the owner of the topic's bundle.

        Raises:
            TopicNotFoundError: The namespace or tenant does not exist.
            ServiceNotReadyError: The bundle is unloading, or no such listener.
        """
        raise NotImplementedError

    def is_owned(self, name: TopicName) -> bool:
        """Whether this broker serves the topic's bundle now."""
        raise NotImplementedError

    async def bundle_of(self, name: TopicName) -> str:
        """The topic's bundle, `0x00000000_0x40000000`."""
        raise NotImplementedError

    async def unload_namespace(self, namespace: NamespaceName) -> None:
        """Unload all bundles of a namespace that this broker owns."""
        raise NotImplementedError

    async def unload_bundle(self, namespace: NamespaceName, bundle: str) -> None:
        """Close a bundle's topics and give up its ownership."""
        raise NotImplementedError
