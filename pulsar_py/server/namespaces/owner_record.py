"""`OwnerRecord`: the content of a bundle's ownership record, and its stored form (a value).

It is stored as JSON, with the keys of Apache Pulsar's brokers.

Source: NamespaceEphemeralData in Pulsar.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from msgspec import Struct

from pulsar_py.common.foreign_json import parse_json
from pulsar_py.server.namespaces.lookup import BrokerAddresses, LocalAddresses


class OwnerRecord(Struct, frozen=True):
    """The addresses of a bundle's owner; `is_disabled` while it unloads the bundle."""

    addresses: LocalAddresses
    is_disabled: bool = False

    def encode(self) -> bytes:
        """The stored form; absent addresses are left out."""
        record: dict[str, object] = {
            **_encode_addresses(self.addresses.default, _OWNER_KEYS),
            "disabled": self.is_disabled,
            "advertisedListeners": encode_listeners(self.addresses),
        }
        return json.dumps(record, separators=(",", ":")).encode()

    @classmethod
    def decode(cls, value: bytes) -> OwnerRecord:
        """Read the stored form.

        Raises:
            ValueError: The bytes are not an ownership record.
        """
        record = parse_json(value)
        listeners = record.get("advertisedListeners") or {}
        addresses = LocalAddresses(
            default=_decode_addresses(record, _OWNER_KEYS),
            by_listener=decode_listeners(listeners),
        )
        return cls(addresses, bool(record.get("disabled")))


def encode_listeners(addresses: LocalAddresses) -> dict[str, dict[str, str]]:
    """The stored form of addresses by listener."""
    return {
        name: _encode_addresses(each, _LISTENER_KEYS)
        for name, each in addresses.by_listener.items()
    }


def decode_listeners(listeners: Mapping[str, Mapping[str, str]]) -> dict[str, BrokerAddresses]:
    """Addresses by listener, from their stored form."""
    return {name: _decode_addresses(each, _LISTENER_KEYS) for name, each in listeners.items()}


_OWNER_KEYS = ("nativeUrl", "nativeUrlTls", "httpUrl", "httpUrlTls")
_LISTENER_KEYS = (
    "brokerServiceUrl",
    "brokerServiceUrlTls",
    "brokerHttpUrl",
    "brokerHttpsUrl",
)


def _encode_addresses(
    addresses: BrokerAddresses, keys: tuple[str, str, str, str]
) -> dict[str, str]:
    values = (
        addresses.broker_url,
        addresses.broker_url_tls,
        addresses.http_url,
        addresses.http_url_tls,
    )
    return {key: value for key, value in zip(keys, values, strict=True) if value is not None}


def _decode_addresses(
    record: Mapping[str, str], keys: tuple[str, str, str, str]
) -> BrokerAddresses:
    broker_url, broker_url_tls, http_url, http_url_tls = (record.get(key) for key in keys)
    return BrokerAddresses(
        broker_url=broker_url,
        broker_url_tls=broker_url_tls,
        http_url=http_url,
        http_url_tls=http_url_tls,
    )
