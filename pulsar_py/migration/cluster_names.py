"""`ClusterNames`: gives the own cluster another name where policies and labels have it (pure).

A namespace is served in the clusters that its policies list, and five of its rates go by the name
of a cluster. Other clusters' names stay. The events of topics' policies keep the name in the list
of clusters that they are replicated to, which only replication between clusters looks at.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from pulsar_py.common.errors import CorruptDataError
from pulsar_py.common.foreign_json import parse_json
from pulsar_py.ledgers import labels

_LISTS: Final = (
    "allowedClusters",
    "allowed_clusters",
    "replication_clusters",
    "replicationClusters",
)
_BY_CLUSTER: Final = (
    "clusterDispatchRate",
    "clusterSubscribeRate",
    "publishMaxMessageRate",
    "replicatorDispatchRate",
    "subscriptionDispatchRate",
    "topicDispatchRate",
)


@dataclass(frozen=True, slots=True)
class ClusterNames:
    """The own cluster's name on both sides."""

    former: str
    new: str

    def document(self, path: str, value: bytes) -> bytes:
        """The policies of a tenant, a namespace or a topic, as JSON.

        Raises:
            CorruptDataError: They are not.
        """
        if self.former == self.new or not value:
            return value
        try:
            document = parse_json(value)
        except ValueError as error:
            raise CorruptDataError(f"{path}: expected JSON: {error}") from error
        if not isinstance(document, dict):
            return value
        renamed = self._renamed(document)
        if renamed == document:
            return value
        return json.dumps(renamed, ensure_ascii=False, separators=(",", ":")).encode()

    def _renamed(self, document: Mapping[str, Any]) -> dict[str, Any]:  # Any: JSON of many shapes
        found = dict(document)
        for name in _LISTS:
            if isinstance(found.get(name), list):
                found[name] = [self._name(each) for each in found[name]]
        for name in _BY_CLUSTER:
            if isinstance(found.get(name), dict):
                found[name] = {self._name(key): rate for key, rate in found[name].items()}
        return found

    def _name(self, name: Any) -> Any:  # Any: as above
        return self.new if name == self.former else name

    def labels(self, custom_metadata: Mapping[str, bytes]) -> dict[str, bytes]:
        """The labels of a ledger; it gets the name if it had none."""
        return {**custom_metadata, labels.CLUSTER: self.new.encode()}
