"""Resource of the broker's settings: value, default, description, dynamic or not.

    GET /admin/console/settings    all of them; secrets and keys are hidden

Those that can change while the broker runs are changed by the calls of the REST API.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from pulsar_py.admin.http_messages import Request, Response, json_response
from pulsar_py.admin.resources.dynamic_configuration import HIDDEN, without_data
from pulsar_py.admin.router import Route, get
from pulsar_py.console.answers import SettingLine
from pulsar_py.console.callers import BASE
from pulsar_py.server.broker import BrokerService
from pulsar_py.server.security.actions import Action

__all__ = ["SettingLists"]

_OF_FILE: Final = "given at the start"
_CHANGED: Final = "changed while it runs"
_DEFAULT: Final = "default"


class SettingLists:
    """Lists settings."""

    def __init__(self, broker: BrokerService) -> None:
        self._broker = broker

    def routes(self) -> Iterable[Route]:
        """The routes of this resource."""
        return (get(BASE + "/settings", self.all, Action.READ_BROKERS, answer=list[SettingLine]),)

    async def all(self, request: Request) -> Response:  # noqa: ARG002
        """Return the settings that have an effect, in the order of their categories."""
        config = self._broker.config
        stored = await self._broker.resources.dynamic_configuration.get("")
        changed = {} if stored is None else stored.texts
        texts, items = config.texts(), []
        dynamic = set(config.dynamic_names())
        for name, declared in config.declared().items():
            text = texts.get(name, "")
            origin = _OF_FILE if config.is_given(name) else _DEFAULT
            item: dict[str, Any] = {  # Any: JSON
                "name": name,
                "category": declared.category,
                "doc": declared.doc,
                "value": HIDDEN if text and config.is_secret(name) else without_data(text),
                "default": without_data(declared.render(declared.default)),
                "origin": _CHANGED if name in changed else origin,
                "isDynamic": name in dynamic,
            }
            items.append(item)
        return json_response(items)
