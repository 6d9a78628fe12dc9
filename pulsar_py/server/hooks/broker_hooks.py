"""`BrokerHooks`: the users' filters and interceptors of one broker, and their errors."""

from __future__ import annotations

from typing import Final

from pulsar_py.server.hooks.contained import HookErrors
from pulsar_py.server.hooks.installed_filters import InstalledFilters
from pulsar_py.server.hooks.interceptors import Interceptors

__all__ = ["MODULES_CALLING_USERS", "BrokerHooks"]

MODULES_CALLING_USERS: Final = frozenset(
    {
        "pulsar_py.server.dispatch.user_filters",
        "pulsar_py.server.hooks.installed_filters",
        "pulsar_py.server.hooks.interceptors",
    }
)
"""Where the broker's loop is given to users' code."""


class BrokerHooks:
    """Owned by the broker; shared by its topics and connections."""

    def __init__(
        self, errors: HookErrors, filters: InstalledFilters, interceptors: Interceptors
    ) -> None:
        self.errors = errors
        self.filters = filters
        self.interceptors = interceptors

    def close(self) -> None:
        """Tell the users' classes that the broker stops."""
        self.filters.close()
        self.interceptors.close()
