from __future__ import annotations

from dataclasses import fields

from pulsar_py.server.subscriptions.subscription_stats import ConsumerStats, SubscriptionStats


def test_snapshots_never_change() -> None:
    for snapshot in (ConsumerStats, SubscriptionStats):
        assert snapshot.__dataclass_params__.frozen  # type: ignore[attr-defined]


def test_numbers_name_their_unit() -> None:
    units = ("_millis", "_count", "_rate", "_entries", "_bytes", "_messages", "_permits", "_total")
    odd = {"consumer_id", "average_messages_per_entry"}
    for snapshot in (ConsumerStats, SubscriptionStats):
        for field in fields(snapshot):
            if field.type in ("int", "float") and field.name not in odd:
                assert field.name.endswith(units), field.name
