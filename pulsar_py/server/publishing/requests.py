"""`ProducerRequest` and `ProducerGrant`: the fields of PRODUCER, and of its answer, as values.

`handle_produce` builds a `ProducerRequest` from the command, so that topics know no commands. Both
are immutable.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct, field

from pulsar_py.common.errors import ServiceError
from pulsar_py.proto.PulsarApi_pb2 import ProducerAccessMode
from pulsar_py.server.dispatch.client_connection import ClientConnection
from pulsar_py.server.dispatch.subscribe_request import KeySharedMeta, SubscribeRequest

__all__ = ["KeySharedMeta", "ProducerGrant", "ProducerRequest", "SubscribeRequest"]

if TYPE_CHECKING:
    from pulsar_py.server.limits.in_flight import InFlightPublishes
    from pulsar_py.server.publishing.producer import Producer


class ProducerRequest(Struct, frozen=True, kw_only=True):
    """The fields of PRODUCER that a topic uses.

    With `name` None the broker generates one; an empty name is a name. `on_ready` is called once
    for a producer that had to wait, when it becomes exclusive or fails; never for others.
    `in_flight` is the connection's count of publishes without an answer.
    """

    connection: ClientConnection
    producer_id: int
    in_flight: InFlightPublishes
    name: str | None = None
    epoch: int = 0
    is_name_user_provided: bool = True
    access_mode: ProducerAccessMode.ValueType = ProducerAccessMode.Shared
    topic_epoch: int | None = None
    is_encrypted: bool = False
    is_transactional: bool = False
    supports_partial_producer: bool = False
    metadata: Mapping[str, str] = field(default_factory=dict)
    schema_version: bytes = b""
    initial_subscription_name: str | None = None
    on_ready: Callable[[ProducerGrant | ServiceError], None] | None = None


class ProducerGrant(Struct, frozen=True):
    """The fields of PRODUCER_SUCCESS. `topic_epoch` is None if the topic has none."""

    producer: Producer
    producer_name: str
    last_sequence_id: int
    topic_epoch: int | None
    is_ready: bool
