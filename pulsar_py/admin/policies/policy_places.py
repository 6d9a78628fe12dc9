"""Reads and writes a policy at its keys in the document of a topic or namespace (pure).

Most have a key of their own; one has three, and the rates of subscriptions share one.

Source: TopicPolicies in Pulsar's policies.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol

from pulsar_py.metadata.documents import TopicPolicies
from pulsar_py.metadata.json_document import Key

Document = Mapping[str, Any]  # Any: JSON of many shapes


class Place(Protocol):
    """Where a policy stands in the document of a topic."""

    def get(self, document: Document) -> Any:
        """The policy's value, None if it is not set."""

    def put(self, document: Document, value: Any) -> dict[str, Any]:
        """The document with another value; None removes it."""


class OneKey:
    """A policy under a key of its own."""

    def __init__(self, key: Key[Any]) -> None:
        self._name = key.json_name

    def get(self, document: Document) -> Any:
        """The value of the key."""
        return document.get(self._name)

    def put(self, document: Document, value: Any) -> dict[str, Any]:
        """The document with the key set or removed."""
        return changed(document, {self._name: value})


class DelayedDelivery:
    """The policy on delayed delivery, which has three keys."""

    _NAMES: Final = {
        "tickTime": TopicPolicies.delayed_delivery_tick_millis.json_name,
        "active": TopicPolicies.is_delayed_delivery_enabled.json_name,
        "maxDeliveryDelayInMillis": TopicPolicies.delayed_delivery_max_delay_millis.json_name,
    }

    def get(self, document: Document) -> Any:
        """All three as one object; None if none is set."""
        found = {field: document.get(name) for field, name in self._NAMES.items()}
        if all(value is None for value in found.values()):
            return None
        return {
            "tickTime": found["tickTime"] or 0,
            "active": bool(found["active"]),
            "maxDeliveryDelayInMillis": found["maxDeliveryDelayInMillis"] or 0,
        }

    def put(self, document: Document, value: Any) -> dict[str, Any]:
        """The document with all three set or removed."""
        fields = value or {}
        return changed(document, {name: fields.get(field) for field, name in self._NAMES.items()})


class OfSubscription:
    """The dispatch rate of one subscription."""

    _NAME: Final = TopicPolicies.subscription_policies.json_name

    def __init__(self, subscription: str) -> None:
        self._subscription = subscription

    def get(self, document: Document) -> Any:
        """The rate in the subscription's object."""
        return ((document.get(self._NAME) or {}).get(self._subscription) or {}).get("dispatchRate")

    def put(self, document: Document, value: Any) -> dict[str, Any]:
        """The document with the subscription's object set or removed."""
        own = None if value is None else {"dispatchRate": value}
        all_of_them = changed(document.get(self._NAME) or {}, {self._subscription: own})
        return changed(document, {self._NAME: all_of_them or None})


def changed(document: Document, changes: Mapping[str, Any]) -> dict[str, Any]:
    """A document with some keys set, or removed where the new value is None."""
    merged = {**document, **changes}
    return {name: value for name, value in merged.items() if value is not None}
