"""A client of Pulsar's REST API with typed calls, for pipelines, the command line and tests.

In: `AdminSettings` (URL, credentials, trust), names of topics and namespaces. Out: values such as
`TopicStats`, and errors of `common.errors`. It stands on `common` alone.

    with AdminClient("http://localhost:8080") as admin:
        for topic in admin.topics("public/default"):
            print(topic, admin.stats(topic).backlog_bytes)

Each call is declared once, as a function that gives a `Call`: in `clusters`, `brokers`,
`namespaces`, `topics`, `subscriptions` and `policies`. `AdminClient` sends them over `http.client`,
`AsyncAdminClient` from an event loop. Names are loaded on first use, so that blocking calls import
no asyncio.

Third-party packages it may import: none.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pulsar_py.admin_client.async_client import AsyncAdminClient
    from pulsar_py.admin_client.call import Call
    from pulsar_py.admin_client.client import AdminClient
    from pulsar_py.admin_client.settings import AdminError, AdminSettings
    from pulsar_py.admin_client.stats import InternalStats, SubscriptionStats, TopicStats

__all__ = [
    "AdminClient",
    "AdminError",
    "AdminSettings",
    "AsyncAdminClient",
    "Call",
    "InternalStats",
    "SubscriptionStats",
    "TopicStats",
]


if not TYPE_CHECKING:  # a type checker that sees `__getattr__` accepts any name

    def __getattr__(name: str) -> object:
        """Load a public name from the module it lives in."""
        homes = {
            "AdminClient": "client",
            "AdminError": "settings",
            "AdminSettings": "settings",
            "AsyncAdminClient": "async_client",
            "Call": "call",
            "InternalStats": "stats",
            "SubscriptionStats": "stats",
            "TopicStats": "stats",
        }
        if name not in homes:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.{homes[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
