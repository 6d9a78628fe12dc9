"""Makes the lines of `/metrics` about authentication: who was let in, who was not, and why.

They are there while authentication is on. `provider_name` is Apache Pulsar's name of a provider of
its own, and that of the class of a user's own; it is empty where no method was served. Reasons are
ours: expired, revoked, missing, unknown method, invalid.

Source: AuthenticationMetrics, AuthenticationMetricsToken in Pulsar's broker.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from pulsar_py.admin.metrics.text_format import labels_text, line, type_line
from pulsar_py.server.security.authentication import (
    EXPIRING_MINUTES,
    AuthenticationProvider,
    Authenticators,
)
from pulsar_py.server.security.basic_provider import BasicProvider
from pulsar_py.server.security.openid_provider import OpenIdProvider
from pulsar_py.server.security.provider_chain import ProviderChain
from pulsar_py.server.security.tls_provider import TlsProvider
from pulsar_py.server.security.token_provider import TokenProvider

__all__ = ["security_lines"]

_NAMES: Final[Mapping[type, str]] = {
    BasicProvider: "AuthenticationProviderBasic",
    OpenIdProvider: "AuthenticationProviderOpenID",
    ProviderChain: "AuthenticationProviderList",
    TlsProvider: "AuthenticationProviderTls",
    TokenProvider: "AuthenticationProviderToken",
}


def security_lines(authenticators: Authenticators, cluster: str) -> Iterator[str]:
    """The lines of authentication; none while it is off."""
    if not authenticators.is_enabled:
        return
    figures = authenticators.counts.statistics()
    names = {method: _name_of(each) for method, each in authenticators.providers.items()}
    place = {"cluster": cluster}

    name = "pulsar_authentication_success_total"
    yield type_line(name, "counter")
    for method, provider_name in names.items():
        labels = {**place, "provider_name": provider_name, "auth_method": method}
        yield line(name, f"{{{labels_text(labels)}}}", figures.successes_count.get(method, 0))

    name = "pulsar_authentication_failures_total"
    yield type_line(name, "counter")
    for (method, reason), count in sorted(figures.failures_count.items()):
        labels = {
            **place,
            "provider_name": names.get(method, ""),
            "auth_method": method,
            "reason": reason,
        }
        yield line(name, f"{{{labels_text(labels)}}}", count)

    name = "pulsar_expired_token_total"
    yield type_line(name, "counter")
    yield line(name, f"{{{labels_text(place)}}}", figures.expired_count)

    name = "pulsar_expiring_token_minutes"
    yield type_line(name, "histogram")
    total = 0
    for bound, count in zip((*EXPIRING_MINUTES, None), figures.expiring_counts, strict=True):
        total += count
        labels = {**place, "le": "+Inf" if bound is None else f"{bound:.1f}"}
        yield line(f"{name}_bucket", f"{{{labels_text(labels)}}}", total)
    yield line(f"{name}_sum", f"{{{labels_text(place)}}}", figures.expiring_minutes_sum)
    yield line(f"{name}_count", f"{{{labels_text(place)}}}", total)


def _name_of(provider: AuthenticationProvider) -> str:
    kind = type(provider)
    return _NAMES.get(kind, kind.__name__)
