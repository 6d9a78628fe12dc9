"""`ConnectionSettings`: the broker's settings for connections, with units in the names.

`broker.py` builds it from `BrokerConfig`; the names in comments are the settings'.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from pulsar_py.server.limits.topic_list_budget import TopicListLimits

MEBIBYTE = 1024 * 1024


MAX_STRANGER_FRAME_BYTES: Final = 128 * 1024
"""The longest frame of a client that has to authenticate, and has not yet."""


class ConnectionSettings(Struct, frozen=True):
    """Limits of all connections of one broker, and the version that it announces."""

    server_version: str = "Pulsar Server4.2.4"
    max_message_bytes: int = 5 * MEBIBYTE  # maxMessageSize
    keep_alive_interval_seconds: float = 30.0  # keepAliveIntervalSeconds
    liveness_check_timeout_seconds: float = 5.0  # connectionLivenessCheckTimeoutMillis
    max_connections: int = 0  # brokerMaxConnections; 0 = no limit
    max_connections_per_ip: int = 0  # brokerMaxConnectionsPerIp; 0 = no limit
    max_pending_publishes_per_connection: int = 1000  # maxPendingPublishRequestsPerConnection
    max_pending_lookups: int = 50_000  # maxConcurrentLookupRequest
    topic_lists: TopicListLimits = TopicListLimits()
    output_high_water_bytes: int = 4 * MEBIBYTE  # per connection
    output_low_water_bytes: int = 1 * MEBIBYTE  # per connection
    max_pending_non_persistent_publishes: int = 1000  # maxConcurrentNonPersistentMessage…
    is_topic_list_watcher_enabled: bool = True  # enableBrokerTopicListWatcher
    is_pattern_evaluation_enabled: bool = True  # enableBrokerSideSubscriptionPattern…
    subscription_pattern_max_length: int = 50  # subscriptionPatternMaxLength
    max_consumer_metadata_bytes: int = 1024  # maxConsumerMetadataSize
    authentication_refresh_check_seconds: float = 60.0  # authenticationRefreshCheckSeconds
    is_transaction_coordinator_enabled: bool = False  # transactionCoordinatorEnabled
    is_broker_entry_metadata_exposed: bool = False  # exposingBrokerEntryMetadataToClientEnabled

    @property
    def max_frame_bytes(self) -> int:
        """The longest frame, its size field included."""
        return self.max_message_bytes + 10 * 1024

    @property
    def max_stranger_frame_bytes(self) -> int:
        """The same before the client is authenticated: CONNECT and AUTH_RESPONSE alone.

        The beginning of a frame is memory, which nobody knows here can have.
        """
        return min(MAX_STRANGER_FRAME_BYTES, self.max_frame_bytes)
