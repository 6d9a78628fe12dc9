"""BundleOwnership: the bundles this broker owns, as ephemeral records in the metadata store (edge).

A record `/namespace/<tenant>/<namespace>/<range>` names the owner's addresses. Whoever creates it
owns the bundle until its session ends. While a bundle is being unloaded its record says `disabled`,
so that nobody is sent there.

Source: OwnershipCache, NamespaceEphemeralData in Pulsar's broker.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

from pulsar_py.common.errors import MetadataExistsError, MetadataNotFoundError
from pulsar_py.common.names import NamespaceName
from pulsar_py.metadata import paths
from pulsar_py.metadata.store import MUST_NOT_EXIST, MetadataStore, Session
from pulsar_py.server.namespaces.lookup import BrokerAddresses, LocalAddresses


@dataclass(frozen=True, slots=True)
class OwnerRecord:
    """Who owns a bundle."""

    addresses: LocalAddresses
    is_disabled: bool = False

    def encode(self) -> bytes:
        """As stored. Absent addresses are left out."""
        record: dict[str, object] = {
            **_encode_addresses(self.addresses.default, _OWNER_KEYS),
            "disabled": self.is_disabled,
            "advertisedListeners": {
                name: _encode_addresses(each, _LISTENER_KEYS)
                for name, each in self.addresses.by_listener.items()
            },
        }
        return json.dumps(record, separators=(",", ":")).encode()

    @classmethod
    def decode(cls, value: bytes) -> OwnerRecord:
        """Read what a broker stored.

        Raises:
            ValueError: It is no such record.
        """
        record = json.loads(value)
        listeners = record.get("advertisedListeners") or {}
        addresses = LocalAddresses(
            default=_decode_addresses(record, _OWNER_KEYS),
            by_listener={
                name: _decode_addresses(each, _LISTENER_KEYS) for name, each in listeners.items()
            },
        )
        return cls(addresses, bool(record.get("disabled")))


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


def _decode_addresses(record: dict[str, str], keys: tuple[str, str, str, str]) -> BrokerAddresses:
    broker_url, broker_url_tls, http_url, http_url_tls = (record.get(key) for key in keys)
    return BrokerAddresses(
        broker_url=broker_url,
        broker_url_tls=broker_url_tls,
        http_url=http_url,
        http_url_tls=http_url_tls,
    )


class BundleOwnership:
    """The bundles of one broker; owned by its `NamespaceService`."""

    def __init__(self, metadata: MetadataStore) -> None:
        self._metadata = metadata
        self._session: Session | None = None
        self._owned: dict[tuple[NamespaceName, str], OwnerRecord] = {}

    async def start(self) -> None:
        """Open the session that the records belong to."""
        self._session = await self._metadata.open_session()

    def owns(self, namespace: NamespaceName, bundle: str) -> bool:
        """Whether the bundle is ours and not being unloaded."""
        record = self._owned.get((namespace, bundle))
        return record is not None and not record.is_disabled

    def owned_bundles(
        self, namespace: NamespaceName | None = None
    ) -> list[tuple[NamespaceName, str]]:
        """All bundles that are ours, those being unloaded too."""
        return [key for key in self._owned if namespace is None or key[0] == namespace]

    async def acquire(
        self, namespace: NamespaceName, bundle: str, addresses: LocalAddresses
    ) -> OwnerRecord:
        """Become the owner if there is none; returns who owns it then.

        Raises:
            MetadataError: The record can't be read or written.
        """
        key = (namespace, bundle)
        path = paths.bundle_owner(namespace, bundle)
        while True:
            if (ours := self._owned.get(key)) is not None:
                return ours
            stored = await self._metadata.get(path)
            if stored is not None and key not in self._owned:
                return OwnerRecord.decode(stored.value)
            record = OwnerRecord(addresses)
            assert self._session is not None, "not started"
            try:
                await self._metadata.put(
                    path, record.encode(), expected_version=MUST_NOT_EXIST, session=self._session
                )
            except MetadataExistsError:
                continue  # another lookup, or another broker, was quicker
            self._owned[key] = record
            return record

    async def disable(self, namespace: NamespaceName, bundle: str) -> None:
        """Say that the bundle is being unloaded; we still own it."""
        record = self._owned.get((namespace, bundle))
        if record is None:
            return
        disabled = replace(record, is_disabled=True)
        self._owned[namespace, bundle] = disabled
        await self._metadata.put(
            paths.bundle_owner(namespace, bundle), disabled.encode(), session=self._session
        )

    async def release(self, namespace: NamespaceName, bundle: str) -> None:
        """Give the bundle up; anyone may take it."""
        try:
            await self._metadata.delete(paths.bundle_owner(namespace, bundle))
        except MetadataNotFoundError:
            pass
        finally:
            self._owned.pop((namespace, bundle), None)

    async def close(self) -> None:
        """Give up everything with the session."""
        self._owned.clear()
        if self._session is not None:
            await self._session.close()
            self._session = None
