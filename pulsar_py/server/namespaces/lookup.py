"""Who serves a topic: LOOKUP answered, by ownership of namespace bundles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum


class LookupType(Enum):
    """What the client does next."""

    CONNECT = "connect"
    REDIRECT = "redirect"


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerAddresses:
    """Where a broker answers; None where it does not listen."""

    broker_url: str | None
    broker_url_tls: str | None = None
    http_url: str | None = None
    http_url_tls: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupResult:
    """A LOOKUP_RESPONSE, or the REST lookup's answer."""

    type: LookupType
    addresses: BrokerAddresses
    is_authoritative: bool
    proxy_through_service_url: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalAddresses:
    """This broker's addresses, set when its listeners are bound; more by listener name."""

    default: BrokerAddresses
    by_listener: Mapping[str, BrokerAddresses] = field(default_factory=dict)
    is_loopback: bool = False
