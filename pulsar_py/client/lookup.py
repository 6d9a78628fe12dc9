"""Which broker serves a topic, how many partitions it has, and what a namespace and schema hold.

`LookupService` is what the client needs, `BinaryLookup` asks over Pulsar's own protocol; over HTTP
it is `http_lookup`.

Source: LookupService and BinaryProtoLookupService in Pulsar's client.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from pulsar_py.client.enums import RegexSubscriptionMode
from pulsar_py.proto.PulsarApi_pb2 import Schema

if TYPE_CHECKING:
    pass

__all__ = ["BrokerAddress", "LookupService", "NamespaceTopics", "SchemaAnswer"]


@dataclass(frozen=True, slots=True)
class BrokerAddress:
    """Where to connect for a topic."""

    logical: str
    """The broker's `host:port`."""
    physical: str
    """The `host:port` that TCP goes to: the broker itself, or the proxy before it."""

    @property
    def is_proxied(self) -> bool:
        """Whether the broker is reached through the service URL (`proxy_through_service_url`)."""
        return self.logical != self.physical


@dataclass(frozen=True, slots=True)
class NamespaceTopics:
    """A namespace's topics, as the broker listed them."""

    topics: tuple[str, ...]
    """Full names, partitions one by one; empty where `is_changed` is false."""
    is_filtered: bool
    """Whether the broker applied the pattern."""
    topics_hash: str
    is_changed: bool
    """False: the hash that was given still stands for the list."""


@dataclass(frozen=True, slots=True)
class SchemaAnswer:
    """A topic's schema and which version of it that is."""

    schema: Schema
    version: bytes


class LookupService(Protocol):
    """What a client asks brokers about topics. Each call ends within the operation timeout."""

    async def lookup(self, topic: str) -> BrokerAddress:
        """The broker that owns the topic; one attempt.

        Raises:
            ServiceError: The broker refused.
            LookupFailedError: Too many redirects, or an answer that makes no sense.
            ClientTimeoutError, ConnectError, ConnectionClosedError: No answer.
        """

    async def partitions_count(self, topic: str, *, may_create: bool = True) -> int:
        """How many partitions; 0 for a topic without. Repeats what may succeed later.

        Args:
            topic: Full name, no partition's.
            may_create: Whether the broker may make a topic that does not exist.

        Raises:
            ServiceError, LookupFailedError, ClientTimeoutError: As `lookup`.
        """

    async def topics_of_namespace(
        self,
        namespace: str,
        mode: RegexSubscriptionMode,
        *,
        pattern: str | None = None,
        topics_hash: str | None = None,
    ) -> NamespaceTopics:
        """The topics of `tenant/namespace`; repeats what may succeed later."""

    async def schema(self, topic: str, version: bytes | None = None) -> SchemaAnswer | None:
        """A topic's schema of that version, or its newest; None where there is none."""

    async def get_or_create_schema(self, topic: str, schema: Schema) -> bytes:
        """The version of that schema, registered if it is new."""

    async def close(self) -> None:
        """Let go of what it holds."""
