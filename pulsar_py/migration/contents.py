"""`Contents`: the source's stores, open for reading; `MoveTarget`: the target's (values)."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from pulsar_py.common.errors import MigrationError
from pulsar_py.ledgers import labels
from pulsar_py.ledgers.chosen_ledgers import ChosenLedgers
from pulsar_py.ledgers.ids import LedgerIds
from pulsar_py.ledgers.store import LedgerOptions, LedgerStore
from pulsar_py.metadata import paths
from pulsar_py.metadata.embedded import MetadataStores


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """What one side keeps; nothing of it changes while this is used."""

    instance: str
    """Tells this side from others."""
    cluster: str
    """The own cluster's name."""
    keys: Mapping[str, bytes]
    """Of all that is moved, parents first."""
    ledgers: Mapping[int, Mapping[str, bytes]]
    """The labels of the ledgers that go along, by id, ascending."""
    store: LedgerStore
    """Where they are read."""
    settings: LedgerOptions
    """The password by which brokers there open ledgers."""
    next_ledger_id: int
    """Above every id that was ever given there."""
    next_producer_number: int
    """Above the number in every name that was ever given to a producer there."""

    @property
    def fingerprint(self) -> str:
        """Changes when a broker has served what is here meanwhile: it makes new ledgers."""
        digest = hashlib.sha256()
        for path in sorted(self.keys):
            digest.update(b"%d %b %d %b" % (len(path), path.encode(), len(self.keys[path]), b" "))
            digest.update(self.keys[path])
        digest.update(",".join(map(str, self.ledgers)).encode())
        return digest.hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveTarget:
    """The other side: its stores, in which no broker works meanwhile."""

    metadata: MetadataStores
    store: ChosenLedgers
    ledger_ids: LedgerIds
    cluster: str
    settings: LedgerOptions
    """How brokers there make ledgers, and open them."""
    address: str
    """As people know it."""


def own_cluster(keys: Mapping[str, bytes], ledgers: Mapping[int, Mapping[str, bytes]]) -> str:
    """The name that a broker's own cluster has, by its ledgers' labels, else by its record.

    Raises:
        MigrationError: Neither says.
    """
    counts = Counter(each[labels.CLUSTER] for each in ledgers.values() if labels.CLUSTER in each)
    if counts:
        return counts.most_common(1)[0][0].decode()
    prefix = f"{paths.CLUSTERS}/"
    names = {path[len(prefix) :].split("/")[0] for path in keys if path.startswith(prefix)}
    if len(names - {"global"}) != 1:
        raise MigrationError(
            "which cluster this is can't be told: its ledgers have no label, and it knows the "
            f"clusters {', '.join(sorted(names)) or '(none)'}: name it with --source-cluster"
        )
    return (names - {"global"}).pop()
