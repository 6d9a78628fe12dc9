"""Decides for each metadata key whether it is moved, into which store, and rewritten how (pure).

Moved is what says which tenants, namespaces, topics, subscriptions, schemas and policies there are.
Left behind is what belongs to brokers that run (who owns what, load, health), to the own cluster's
addresses and its rules for brokers, and to the stores themselves (ids, counters).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from pulsar_py.common.errors import CorruptDataError
from pulsar_py.managed_ledger.log.ledger_format import decode_name
from pulsar_py.metadata import paths
from pulsar_py.migration.cluster_names import ClusterNames
from pulsar_py.migration.renumbering import Renumbering


class Home(Enum):
    """The store that a key is in."""

    LOCAL = "local"
    CONFIGURATION = "configuration"


ROOTS: Final = {
    paths.CLUSTERS: Home.CONFIGURATION,
    paths.POLICIES: Home.CONFIGURATION,
    paths.LOCAL_POLICIES: Home.LOCAL,
    paths.PARTITIONED_TOPICS: Home.CONFIGURATION,
    paths.RESOURCE_GROUPS: Home.CONFIGURATION,
    f"{paths.TOPIC_POLICIES}/global": Home.CONFIGURATION,
    f"{paths.TOPIC_POLICIES}/local": Home.LOCAL,
    paths.DYNAMIC_CONFIGURATION: Home.LOCAL,
    paths.MANAGED_LEDGERS: Home.LOCAL,
    paths.SCHEMAS: Home.LOCAL,
}
"""What is moved: these keys and all below them."""

_CURSOR_PARTS: Final = 6
"""Parts of a cursor's path: managed-ledgers, tenant, namespace, persistent, topic, cursor."""
_TOPIC_ROOTS: Final = (paths.MANAGED_LEDGERS, paths.SCHEMAS, paths.PARTITIONED_TOPICS)


class Existing(Enum):
    """What happens to a policy that the target has, too, and that differs."""

    REFUSE = "refuse"
    KEEP = "keep"
    REPLACE = "replace"


class Fate(Enum):
    """What happens to one key."""

    CREATE = "create"
    THERE = "there"
    KEEP = "keep"
    REPLACE = "replace"
    REFUSE = "refuse"


def root_of(path: str) -> str | None:
    """The root in `ROOTS` that a key is at or below; None for one that is left behind."""
    for root in ROOTS:
        if path == root or path.startswith(f"{root}/"):
            return root
    return None


def is_cursor(path: str) -> bool:
    """Whether a key below `managed-ledgers` is a cursor's; else it is a topic's, or above one."""
    return len(path[1:].split("/")) == _CURSOR_PARTS


def moved(keys: Mapping[str, bytes], cluster: str) -> dict[str, bytes]:
    """The keys that are moved, parents first; `cluster` is the own one, whose record stays."""
    own = paths.cluster(cluster)
    return {
        path: keys[path]
        for path in sorted(keys)
        if root_of(path) is not None and path != own and not path.startswith(f"{own}/")
    }


@dataclass(frozen=True, slots=True)
class Rewriting:
    """How values of keys are rewritten."""

    renumbering: Renumbering
    names: ClusterNames

    def value(self, path: str, value: bytes) -> bytes:
        """The value that a key gets in the target.

        Raises:
            CorruptDataError: It can't be read, and would have to be rewritten.
        """
        try:
            return self._value(path, value)
        except CorruptDataError as error:
            raise CorruptDataError(f"{path}: {error}") from error

    def _value(self, path: str, value: bytes) -> bytes:
        match root_of(path):
            case paths.MANAGED_LEDGERS:
                if is_cursor(path):
                    name = decode_name(path.rpartition("/")[2])
                    return self.renumbering.cursor_record(value, name)
                return self.renumbering.topic_record(value)
            case paths.SCHEMAS:
                return self.renumbering.schema_locator(value)
            case paths.POLICIES:
                return self.names.document(path, value)
            case root if root is not None and root.startswith(paths.TOPIC_POLICIES):
                return self.names.document(path, value)
            case _:
                return value


def fate_of(path: str, new: bytes, found: bytes | None, existing: Existing) -> Fate:
    """What happens to a key of which the target has `found`; None is nothing.

    An empty value is one that the key's own topic may have, of which nobody has opened that
    partition yet; in the place of any other value it is a parent that was made on demand.
    """
    if found == new:
        return Fate.THERE
    if not found:
        return Fate.CREATE
    if path.startswith(tuple(f"{root}/" for root in _TOPIC_ROOTS)):
        return Fate.REFUSE  # one topic can't have both
    return Fate(existing.value)
