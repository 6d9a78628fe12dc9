"""BrokerTopicSettings: the declarations, against what Apache Pulsar 4.2.4 has."""

from __future__ import annotations

import pytest

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.common.policies import InactiveTopicDeleteMode
from pulsar_py.server.settings.topics import BrokerTopicSettings


def test_defaults_are_pulsars() -> None:
    settings = BrokerTopicSettings()
    assert settings.maxUnackedMessagesPerConsumer == 50_000
    assert settings.maxUnackedMessagesPerSubscription == 200_000
    assert settings.dispatcherMaxRoundRobinBatchSize == 20
    assert settings.defaultNumberOfNamespaceBundles == 4
    assert settings.brokerDeleteInactiveTopicsMode is (
        InactiveTopicDeleteMode.DELETE_WHEN_NO_SUBSCRIPTIONS
    )
    assert settings.brokerDeleteInactiveTopicsMaxInactiveDurationSeconds is None
    assert settings.delayedDeliveryTickTimeMillis == 1000
    assert settings.isAllowAutoUpdateSchemaEnabled


def test_subscription_types_are_the_four() -> None:
    assert BrokerTopicSettings(
        subscriptionTypesEnabled=frozenset({"Shared"})
    ).subscriptionTypesEnabled == {"Shared"}
    with pytest.raises(
        ConfigurationError, match="'shared' is not allowed, expected any of Exclusive, Shared"
    ):
        BrokerTopicSettings(subscriptionTypesEnabled=frozenset({"shared"}))
