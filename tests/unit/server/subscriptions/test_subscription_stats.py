from __future__ import annotations

from pulsar_py.server.subscriptions.subscription_stats import ConsumerStats, SubscriptionStats


def test_snapshots_never_change() -> None:
    for snapshot in (ConsumerStats, SubscriptionStats):
        assert snapshot.__struct_config__.frozen


def test_numbers_name_their_unit() -> None:
    units = ("_millis", "_count", "_rate", "_entries", "_bytes", "_messages", "_permits", "_total")
    odd = {"consumer_id", "average_messages_per_entry"}
    for snapshot in (ConsumerStats, SubscriptionStats):
        for name, kind in snapshot.__annotations__.items():
            if kind in ("int", "float") and name not in odd:
                assert name.endswith(units), name
