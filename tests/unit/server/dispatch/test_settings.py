from __future__ import annotations

from pulsar_py.server.dispatch.settings import DispatchSettings
from pulsar_py.server.dispatch.subscribe_request import SubscriptionType


def test_the_defaults_are_those_of_broker_conf() -> None:
    settings = DispatchSettings()
    assert settings.max_read_batch_entries == 100
    assert settings.max_unacked_messages_per_consumer == 50_000
    assert settings.failover_delay_millis == 1000
    assert settings.enabled_subscription_types == frozenset(SubscriptionType)
