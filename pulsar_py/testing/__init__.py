"""Virtual time, simulated disks and networks, and fixtures: shipped, imported by tests only.

In: code that takes a clock, a disk, or stores as arguments. Out: the same code in virtual time, on
media that fail from a seed; brokers for tests as fixtures.

What is exported is loaded when it is asked for: every pytest of the environment imports this
package for its plugin.

Third-party packages it may import: pytest, pytest-asyncio, hypothesis, _typeshed.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pulsar_py.testing.broker_thread import BrokerThread
    from pulsar_py.testing.restartable_broker import BrokerOptions, RestartableBroker

__all__ = ["BrokerOptions", "BrokerThread", "RestartableBroker"]


if not TYPE_CHECKING:  # a type checker that sees `__getattr__` accepts any name

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module  # noqa: PLC0415 - see above

        module = "broker_thread" if name == "BrokerThread" else "restartable_broker"
        return getattr(import_module(f"{__name__}.{module}"), name)
