"""Protocol versions: the features of each, and the version that two peers use (pure).

Each side names the highest version it knows, and both use the lower one. A version only ever adds
features, so one table from feature to first version is enough.

Source: ProtocolVersion in PulsarApi.proto.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Final

from pulsar_py.proto.PulsarApi_pb2 import ProtocolVersion

CURRENT_VERSION: Final = max(ProtocolVersion.values())
"""The highest version we know, both as broker and as client."""


class Feature(Enum):
    """Features that depend on the peer's protocol version."""

    PING = auto()
    """The peer answers PING."""
    REDELIVER_UNACKNOWLEDGED = auto()
    LZ4_AND_ZLIB = auto()
    BATCHES = auto()
    """The consumer can read batches; without it, one that would get a batch is disconnected."""
    CLOSE_WITHOUT_DISCONNECT = auto()
    """The peer takes CLOSE_PRODUCER and CLOSE_CONSUMER; without it, its connection is closed."""
    CHECKSUM = auto()
    BINARY_LOOKUP = auto()
    CONSUMER_STATS = auto()
    END_OF_TOPIC = auto()
    """The peer takes REACHED_END_OF_TOPIC."""
    PROXY_TO_BROKER = auto()
    CHECKSUM_IN_MESSAGE = auto()
    """The peer copes with a checksum in MESSAGE; without it, the broker strips it."""
    LAST_MESSAGE_ID = auto()
    ACTIVE_CONSUMER_CHANGE = auto()
    TOPICS_OF_NAMESPACE = auto()
    MULTIPLE_IDS_IN_ACK = auto()
    JSON_SCHEMA_AS_AVRO = auto()
    AUTH_CHALLENGE = auto()
    KEY_SHARED = auto()
    GET_OR_CREATE_SCHEMA = auto()
    ACK_RESPONSE = auto()
    """The peer may ask for receipts of its ACKs."""
    BROKER_ENTRY_METADATA = auto()
    """The peer parses broker entry metadata, if its feature flag says so, too."""
    TRANSACTION_COORDINATOR_CONNECT = auto()
    TOPIC_MIGRATED = auto()
    AUTO_CONSUME_SCHEMA = auto()


FIRST_VERSION: Final[dict[Feature, int]] = {
    Feature.PING: 1,
    Feature.REDELIVER_UNACKNOWLEDGED: 2,
    Feature.LZ4_AND_ZLIB: 3,
    Feature.BATCHES: 4,
    Feature.CLOSE_WITHOUT_DISCONNECT: 5,
    Feature.CHECKSUM: 6,
    Feature.BINARY_LOOKUP: 7,
    Feature.CONSUMER_STATS: 8,
    Feature.END_OF_TOPIC: 9,
    Feature.PROXY_TO_BROKER: 10,
    Feature.CHECKSUM_IN_MESSAGE: 11,
    Feature.LAST_MESSAGE_ID: 12,
    Feature.ACTIVE_CONSUMER_CHANGE: 12,
    Feature.TOPICS_OF_NAMESPACE: 12,
    Feature.MULTIPLE_IDS_IN_ACK: 12,
    Feature.JSON_SCHEMA_AS_AVRO: 13,
    Feature.AUTH_CHALLENGE: 14,
    Feature.KEY_SHARED: 14,
    Feature.GET_OR_CREATE_SCHEMA: 15,
    Feature.ACK_RESPONSE: 17,
    Feature.BROKER_ENTRY_METADATA: 18,
    Feature.TRANSACTION_COORDINATOR_CONNECT: 19,
    Feature.TOPIC_MIGRATED: 20,
    Feature.AUTO_CONSUME_SCHEMA: 21,
}


def allows(version: int, feature: Feature) -> bool:
    """Whether peers with `version` may use `feature`."""
    return version >= FIRST_VERSION[feature]


def negotiate(peer_version: int, own_version: int = CURRENT_VERSION) -> int:
    """The version that both sides use."""
    return min(peer_version, own_version)
