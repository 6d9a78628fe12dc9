"""The broker without its sockets and HTTP: topics, namespaces, schemas and their timers.

`BrokerService` is given plain collaborators and a `BrokerConfig`, of which it and `standalone.py`
are the only readers. It starts and stops everything above the storage.
"""

from __future__ import annotations

from pulsar_py.common.clock import Clock
from pulsar_py.metadata.store import MetadataStore
from pulsar_py.server.namespaces.lookup import LocalAddresses
from pulsar_py.server.namespaces.service import NamespaceService
from pulsar_py.server.topics.in_flight import PublishBuffer
from pulsar_py.server.topics.registry import TopicRegistry
from pulsar_py.storage.ledger_store import LedgerStore


class BrokerService:
    """One broker; closing it leaves metadata store and ledger store to who made them."""

    # Attributes: config, clock, resources, managed_ledgers (the opener), topics, namespaces,
    # schemas, publish_buffer, statistics.
    topics: TopicRegistry
    namespaces: NamespaceService
    publish_buffer: PublishBuffer

    def __init__(
        self,
        config: object,
        *,
        ledger_store: LedgerStore,
        metadata: MetadataStore,
        configuration_metadata: MetadataStore,
        clock: Clock,
    ) -> None:
        """`metadata` is the local store, `configuration_metadata` the one clusters share."""
        raise NotImplementedError

    async def start(self) -> None:
        """Open a metadata session, start the timers; afterwards lookups and topics work."""
        raise NotImplementedError

    def set_addresses(self, addresses: LocalAddresses) -> None:
        """The listeners are bound; call before the first lookup."""
        raise NotImplementedError

    async def close(self) -> None:
        """Unload every topic with everything written, give up ownership, stop the timers."""
        raise NotImplementedError
