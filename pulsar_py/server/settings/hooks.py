"""The settings of broker.conf for users' classes that the broker calls."""

# ruff: noqa: N815 - settings keep the names of broker.conf
from __future__ import annotations

from typing import Final

from pulsar_py.server.settings.declaring import Settings, setting

HOOKS: Final = "Filters and interceptors"


class HookSettings(Settings):
    """Entry filters and broker interceptors: Python classes of users."""

    brokerInterceptors: tuple[str, ...] = setting(
        default=(),
        category=HOOKS,
        doc="Interceptors that are told what clients do, in order: Python classes as "
        "`module.Class`, derived from `pulsar_py.server.hooks.BrokerInterceptor`.",
    )
    entryFilterNames: tuple[str, ...] = setting(
        default=(),
        dynamic=True,
        category=HOOKS,
        doc="Entry filters of all topics, in order: Python classes as `module.Class`, derived from "
        "`pulsar_py.server.hooks.EntryFilter`.",
    )
    entryFiltersDirectory: str = setting(
        default="",
        dynamic=True,
        category=HOOKS,
        doc="Directory of Python files whose classes policies may name as `file.Class`; beside "
        "those, policies may name what `entryFilterNames` names. A change has effect on topics "
        "that are loaded after it.",
    )
    allowOverrideEntryFilters: bool = setting(
        default=False,
        dynamic=True,
        category=HOOKS,
        doc="Whether policies of topics and namespaces replace `entryFilterNames`.",
    )
    dispatcherEntryFilterRescheduledMessageDelay: int = setting(
        default=1000,
        minimum=0,
        dynamic=True,
        category=HOOKS,
        doc="Milliseconds until an entry that a filter rescheduled is shown to it again.",
    )
