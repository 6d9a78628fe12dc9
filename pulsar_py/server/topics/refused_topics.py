"""RefusedTopics: topics of a cluster that this broker would serve wrongly, so it does not.

Brokers of Apache Pulsar may have left what this one can't go on with: a namespace that is
replicated, a topic in the shadow of another one, ledgers in tiered storage, a cluster that was
migrated, transactions. Such a topic is refused before anything of it is opened or written. A
transaction shows only among the messages: nobody is sent it, or anything after it.

Each refusal is counted by its reason, for the metric `pulsar_py_refused_topics_total`.

Source: PersistentTopic and ShadowManagedLedgerImpl in Apache Pulsar.
"""

from __future__ import annotations

import logging
from collections import Counter
from typing import Final

from pulsar_py.common.errors import NotAllowedError
from pulsar_py.common.names import TopicName
from pulsar_py.common.position import Position
from pulsar_py.managed_ledger.log.ledger_format import decode_ledger_list
from pulsar_py.metadata.documents import LocalPolicies, NamespacePolicies, TopicPolicies

logger = logging.getLogger(__name__)

REPLICATED: Final = "replicated"
SHADOW: Final = "shadow"
MIGRATED: Final = "migrated"
OFFLOADED: Final = "offloaded"
TRANSACTIONS: Final = "transactions"
REASONS: Final = (REPLICATED, SHADOW, MIGRATED, OFFLOADED, TRANSACTIONS)

SHADOW_SOURCE_PROPERTY: Final = "PULSAR.SHADOW_SOURCE"
MIGRATED_PROPERTY: Final = "migrated"


class RefusedTopics:
    """One of a broker of a cluster; a standalone broker has none."""

    def __init__(self, cluster: str) -> None:
        self._cluster = cluster
        self.counts: Counter[str] = Counter()
        """Refusals so far, by reason."""

    def check_policies(
        self,
        name: TopicName,
        namespace: NamespacePolicies | None,
        local: LocalPolicies | None,
        own: TopicPolicies | None,
    ) -> None:
        """Return if the policies ask for nothing that is not there.

        Raises:
            NotAllowedError: They do.
        """
        clusters = own.replication_clusters if own is not None else None
        if clusters is None and namespace is not None:
            clusters = namespace.replication_clusters
        others = [each for each in clusters or () if each != self._cluster]
        if others:
            raise self._refused(
                name,
                REPLICATED,
                f"it is replicated to {', '.join(others)}, which needs geo-replication",
            )
        if own is not None and own.json.get("shadowTopics"):
            raise self._refused(name, SHADOW, "it has shadow topics")
        for policies in (namespace, local):
            if policies is not None and policies.json.get("migrated"):
                raise self._refused(name, MIGRATED, "its namespace was migrated to another cluster")

    def check_record(self, name: TopicName, value: bytes) -> None:
        """Return if a topic's list of ledgers needs no feature that this broker lacks.

        Raises:
            NotAllowedError: It needs one.
            CorruptDataError: It can't be read.
        """
        stored = decode_ledger_list(value)
        source = stored.properties.get(SHADOW_SOURCE_PROPERTY)
        if source is not None:
            raise self._refused(name, SHADOW, f"it is a shadow of {source}")
        if stored.properties.get(MIGRATED_PROPERTY, "").lower() == "true":
            raise self._refused(name, MIGRATED, "it was migrated to another cluster")
        offloaded = [
            record.ledger_id
            for record in stored.ledgers
            if record.stored is not None and record.stored.offloadContext.complete
        ]
        if offloaded:
            raise self._refused(
                name,
                OFFLOADED,
                f"its ledger {offloaded[0]} is in tiered storage, which is not read",
            )

    def note_transaction(self, name: TopicName, position: Position) -> None:
        """A transaction's message or marker was found; it and what follows is not delivered."""
        self.counts[TRANSACTIONS] += 1
        logger.error(
            "topic is not read further: it has transactions",
            extra={"topic": str(name), "position": str(position)},
        )

    def _refused(self, name: TopicName, reason: str, text: str) -> NotAllowedError:
        self.counts[reason] += 1
        logger.warning("topic refused", extra={"topic": str(name), "reason": reason})
        return NotAllowedError(f"Topic {name} is not served by this broker: {text}")
