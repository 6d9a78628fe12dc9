"""Virtual time, simulated disks and networks, and fixtures: shipped, imported by tests only.

`BrokerThread` is loaded when it is asked for: every pytest of the environment imports this package
for its plugin.

Third-party packages it may import: pytest, pytest-asyncio, hypothesis, _typeshed.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pulsar_py.testing.broker_thread import BrokerThread

__all__ = ["BrokerThread"]


def __getattr__(name: str) -> Any:  # Any: whatever is exported
    if name == "BrokerThread":
        from pulsar_py.testing.broker_thread import BrokerThread  # noqa: PLC0415 - see above

        return BrokerThread
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
