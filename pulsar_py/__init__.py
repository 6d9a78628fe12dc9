"""A broker, a client and pipelines that speak Apache Pulsar's protocols, in Python.

    async with pulsar_py.Broker() as broker:
        print(broker.service_url, broker.web_service_url)

Names are loaded on first use, so that importing the package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pulsar_py.standalone import Broker

__all__ = ["Broker"]

_HOMES = {"Broker": "pulsar_py.standalone"}


def __getattr__(name: str) -> object:
    """Load a public name from the module it lives in; `__version__` from the installed package."""
    if name == "__version__":
        return import_module("importlib.metadata").version("pulsar_py")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
