"""Snapshots of producers, for REST and metrics.

Rates are per second over the last window (60 s), counts since the producer connected, times in
milliseconds since 1970.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from pulsar_py.proto.PulsarApi_pb2 import ProducerAccessMode


class ProducerStats(Struct, frozen=True, kw_only=True):
    """One producer at one moment."""

    producer_id: int
    producer_name: str
    access_mode: ProducerAccessMode.ValueType
    address: str
    client_version: str
    connected_since_millis: int
    metadata: Mapping[str, str]
    message_in_rate: float
    bytes_in_rate: float
    chunked_rate: float
    average_message_bytes: float
    messages_in_count: int
    bytes_in_count: int
    dropped_count: int
    dropped_rate: float = 0.0
    supports_partial_producer: bool = False


def access_mode_of(name: str) -> ProducerAccessMode.ValueType:
    """The access mode of that name, as statistics have it; `Shared` for an unknown one."""
    is_known = name in ProducerAccessMode.keys()  # noqa: SIM118 - an enum of protobuf, no mapping
    return ProducerAccessMode.Value(name) if is_known else ProducerAccessMode.Shared
