"""`InstalledFilters`: the users' entry filters that a broker has, by name (edge).

`entryFilterNames` may name any class that can be imported. Policies may name those, and the classes
of files in `entryFiltersDirectory`: who may set a policy must not choose what a broker imports.
Each class has one instance, made when it is first needed.

Source: EntryFilterProvider in Pulsar's broker.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.server.hooks.contained import Contained, HookErrors
from pulsar_py.server.hooks.entry_filter import EntryFilter
from pulsar_py.server.hooks.loading import load_class, load_from_directory

logger = logging.getLogger(__name__)

SETTING: Final = "entryFilterNames"


class InstalledFilter(Struct, frozen=True):
    """One filter, and what its errors are counted by."""

    name: str
    filter: EntryFilter
    contained: Contained


class InstalledFilters:
    """All entry filters of one broker, which owns it."""

    def __init__(self, errors: HookErrors, *, names: Sequence[str], directory: str) -> None:
        """`names` are those of the setting, `directory` is where filters of policies lie.

        Raises:
            ConfigurationError: A name of the setting is not that of a filter.
        """
        self._errors = errors
        self._directory = directory
        self._made: dict[str, InstalledFilter] = {}
        self._missing: set[str] = set()  # logged once
        self._of_setting = frozenset(names)
        self._retired: list[InstalledFilter] = []  # of former settings; dispatchers may have them
        for name in names:
            self.require(name)

    def use_settings(self, *, names: Sequence[str], directory: str) -> None:
        """Use changed settings; a name that can't be loaded is logged when it is needed."""
        if (frozenset(names), directory) == self.settings:
            return
        self._directory = directory
        self._of_setting = frozenset(names)
        self._missing.clear()
        self._retired += self._made.values()
        self._made.clear()

    @property
    def settings(self) -> tuple[frozenset[str], str]:
        """The names of the setting, and the directory."""
        return self._of_setting, self._directory

    @property
    def may_be_used(self) -> bool:
        """Whether topics can have filters now, by the setting or by policies."""
        return bool(self._of_setting or self._directory)

    def require(self, name: str) -> InstalledFilter:
        """The filter of that name.

        Raises:
            ConfigurationError: It is not installed.
        """
        made = self._made.get(name)
        if made is not None:
            return made
        kind = load_from_directory(name, self._directory, EntryFilter, SETTING)
        if kind is None and name in self._of_setting:
            kind = load_class(name, EntryFilter, SETTING)
        if kind is None:
            raise ConfigurationError(f"Entry filter '{name}' not found")
        self._made[name] = InstalledFilter(name, kind(), Contained(name, self._errors))
        return self._made[name]

    def refusal_of(self, name: str) -> str | None:
        """Why a policy can't name this filter; None if it can."""
        refusal: str | None = f"Entry filter '{name}' can't be loaded: see the broker's log"
        with Contained(name, self._errors):  # a user's module may raise anything
            try:
                self.require(name)
                refusal = None
            except ConfigurationError:
                refusal = f"Entry filter '{name}' not found"
        return refusal

    def find(self, names: Sequence[str]) -> tuple[InstalledFilter, ...]:
        """The filters of these names, in order; those that are not installed are left out."""
        found: list[InstalledFilter] = []
        for name in names:
            if name in self._missing:
                continue
            self._missing.add(name)
            with Contained(name, self._errors):  # a user's module may raise anything
                found.append(self.require(name))
                self._missing.discard(name)
        return tuple(found)

    def close(self) -> None:
        """Tell all filters that the broker stops."""
        for each in (*self._retired, *self._made.values()):
            with each.contained:
                each.filter.close()
        self._retired.clear()
        self._made.clear()
