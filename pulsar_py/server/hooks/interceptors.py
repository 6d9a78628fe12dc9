"""`Interceptors`: the users' interceptors of one broker (edge).

Which methods a class overrides is looked up once. Whoever has something to tell asks `hears` when
it is made, and leaves the calls out if nobody listens: unused, interceptors cost nothing.

Source: BrokerInterceptors in Pulsar's broker.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from pulsar_py.server.hooks.broker_interceptor import BrokerInterceptor
from pulsar_py.server.hooks.contained import Contained, HookErrors
from pulsar_py.server.hooks.loading import load_class

SETTING: Final = "brokerInterceptors"

_CALLS: Final = tuple(name for name in vars(BrokerInterceptor) if not name.startswith("_"))

CONNECTION_CALLS: Final = ("on_connection_created", "on_connection_closed", "on_pulsar_command")
"""Those for which a connection has to tell of its life and its commands."""

Listener = tuple[Callable[..., Any], Contained]  # Any: what users return, which is ignored


class Interceptors:
    """All interceptors of one broker, which owns it; called in the order of the setting."""

    def __init__(self, errors: HookErrors, names: Sequence[str] = ()) -> None:
        """`names` are classes as `module.Class`.

        Raises:
            ConfigurationError: One is not that of an interceptor.
        """
        kinds = [(name, load_class(name, BrokerInterceptor, SETTING)) for name in names]
        self.made = tuple((name, kind()) for name, kind in kinds)
        self._listeners: dict[str, tuple[Listener, ...]] = {
            call: tuple(
                (getattr(each, call), Contained(f"{name}.{call}", errors))
                for name, each in self.made
                if getattr(type(each), call) is not getattr(BrokerInterceptor, call)
            )
            for call in _CALLS
        }

    def hears(self, *calls: str) -> bool:
        """Whether a class overrides one of these methods."""
        return any(self._listeners[call] for call in calls)

    def tell(self, call: str, *args: object) -> None:
        """Call the method of all that override it; errors are contained."""
        for listener, contained in self._listeners[call]:
            with contained:
                listener(*args)

    def close(self) -> None:
        """Tell all that the broker has stopped."""
        self.tell("close")
