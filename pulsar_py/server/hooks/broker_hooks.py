"""`BrokerHooks`: the users' filters and interceptors of one broker, and their errors."""

from __future__ import annotations

from pulsar_py.server.hooks.contained import HookErrors
from pulsar_py.server.hooks.installed_filters import InstalledFilters

__all__ = ["BrokerHooks"]


class BrokerHooks:
    """Owned by the broker; shared by its topics and connections."""

    def __init__(self, errors: HookErrors, filters: InstalledFilters) -> None:
        self.errors = errors
        self.filters = filters

    def close(self) -> None:
        """Tell the users' classes that the broker stops."""
        self.filters.close()
