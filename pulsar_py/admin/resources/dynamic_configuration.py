"""REST resource of the brokers' settings: those in use, and those changed while brokers run.

A changed setting is stored in the metadata, where all brokers of the cluster watch it; it has its
effect at once, and is read again at every start. A text that is no value of its setting is stored,
too, as Apache Pulsar does; every broker logs and ignores it.

Source: BrokersBase in Pulsar's broker.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Final

from pulsar_py.admin.http_messages import EMPTY, HttpError, Request, Response, json_response
from pulsar_py.admin.resources.brokers import BROKERS
from pulsar_py.admin.router import Route, delete, get, post
from pulsar_py.metadata.documents import DynamicConfiguration
from pulsar_py.server.broker import BrokerService
from pulsar_py.server.security.actions import Action

CONFIGURATION: Final = BROKERS + "/configuration"

HIDDEN: Final = "********"
"""Stands for the value of a secret setting."""

OLD_NAMES: Final[Mapping[str, str]] = {"backlogQuotaDefaultLimitGB": "-1"}
"""Old names that tools still read, with the value that means that the new name counts."""


_DATA: Final = re.compile(r"data:[^,\s]*,[^\s\"']*")
"""To the end of the word: data that is not in base64 may have commas itself."""


def without_data(text: str) -> str:
    """A setting's text without what stands in a `data:` URL: keys and users are given so, too."""
    return _DATA.sub(f"data:{HIDDEN}", text)


class DynamicSettings:
    """Reads and changes the settings of all brokers."""

    def __init__(self, broker: BrokerService) -> None:
        self._broker = broker
        self._stored = broker.resources.dynamic_configuration

    def routes(self) -> Iterable[Route]:
        """The routes of this resource."""
        one = CONFIGURATION + "/{name}"
        return (
            get(CONFIGURATION, self.names, Action.READ_BROKERS, answer=list[str]),
            get(CONFIGURATION + "/values", self.values, Action.READ_BROKERS, answer=dict[str, str]),
            get(
                CONFIGURATION + "/runtime", self.runtime, Action.READ_BROKERS, answer=dict[str, str]
            ),
            post(one + "/{value}", self.set, Action.WRITE_BROKERS, status=HTTPStatus.OK),
            delete(one, self.unset, Action.WRITE_BROKERS, status=HTTPStatus.OK),
        )

    async def names(self, request: Request) -> Response:  # noqa: ARG002
        """Return the names of the settings that may be changed while brokers run."""
        return json_response(self._broker.config.dynamic_names())

    async def values(self, request: Request) -> Response:  # noqa: ARG002
        """Return the settings that were changed, with their texts; secrets are hidden."""
        found = await self._stored.get("")
        return json_response({} if found is None else self._shown(found.texts))

    async def runtime(self, request: Request) -> Response:  # noqa: ARG002
        """Return all settings in use; those without effect have Apache Pulsar's default.

        Of users' providers the names alone are shown: nobody else knows what of them is secret.
        """
        config = self._broker.config
        texts = {name: each.default for name, each in config.settings_without_effect().items()}
        texts |= {**OLD_NAMES, **config.texts()}
        hidden = dict.fromkeys(config.provider_settings, HIDDEN)
        return json_response(dict(sorted({**self._shown(texts), **hidden}.items())))

    def _shown(self, texts: Mapping[str, str]) -> dict[str, str]:
        is_secret = self._broker.config.is_secret
        return {
            name: HIDDEN if text and is_secret(name) else without_data(text)
            for name, text in texts.items()
        }

    async def set(self, request: Request) -> Response:
        """Change one setting; the text is not checked."""
        name = self._dynamic(request, "update")
        await self._change({name: request.path["value"]})
        return EMPTY

    async def unset(self, request: Request) -> Response:
        """Use the value of the file again; fine if the setting was not changed."""
        await self._change({self._dynamic(request, "delete"): None})
        return EMPTY

    def _dynamic(self, request: Request, verb: str) -> str:
        name = request.path["name"]
        if name not in self._broker.config.dynamic_names():
            raise HttpError(
                HTTPStatus.PRECONDITION_FAILED, f"Can't {verb} non-dynamic configuration"
            )
        return name

    async def _change(self, changes: Mapping[str, str | None]) -> None:
        def change(known: DynamicConfiguration | None) -> DynamicConfiguration:
            texts = {**(known.texts if known is not None else {}), **changes}
            return DynamicConfiguration(
                {name: text for name, text in texts.items() if text is not None}
            )

        await self._stored.update_or_create("", change)
        await self._broker.apply_dynamic_configuration()
