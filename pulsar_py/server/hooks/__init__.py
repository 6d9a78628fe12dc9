"""Interfaces that users implement, to look at what a broker does or to choose what is delivered.

What comes in: names of users' classes, in settings and policies. What goes out: their instances,
each call of which is contained: an error is logged and counted, and the broker goes on. This room
knows nothing of topics and connections.
"""

from pulsar_py.server.hooks.broker_interceptor import (
    BrokerInterceptor,
    ClientInfo,
    ConsumerInfo,
    ProducerInfo,
)
from pulsar_py.server.hooks.entry_filter import (
    EntryFilter,
    FilterContext,
    FilteredEntry,
    FilterResult,
)

__all__ = [
    "BrokerInterceptor",
    "ClientInfo",
    "ConsumerInfo",
    "EntryFilter",
    "FilterContext",
    "FilterResult",
    "FilteredEntry",
    "ProducerInfo",
]
