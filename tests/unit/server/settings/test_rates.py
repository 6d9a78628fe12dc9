"""The settings for rates."""

from __future__ import annotations

import pytest

from pulsar_py.common.policies import DispatchRate, PublishRate, SubscribeRate
from pulsar_py.server.broker_settings import topic_settings
from pulsar_py.server.config import BrokerConfig
from pulsar_py.server.settings.rates import RATES, RateSettings


def test_without_settings_there_is_no_limit() -> None:
    settings = topic_settings(BrokerConfig())
    assert settings.publish_rate == PublishRate(0, 0)
    assert settings.subscribe_rate == SubscribeRate(0)
    assert settings.dispatch.topic_rate == settings.dispatch.subscription_rate == DispatchRate(0, 0)
    assert not settings.dispatch.is_limited_by_broker
    assert not settings.is_publishing_limited_by_broker


def test_each_setting_has_its_effect() -> None:
    settings = topic_settings(
        BrokerConfig.from_values(
            {
                "maxPublishRatePerTopicInMessages": 1,
                "brokerPublisherThrottlingMaxByteRate": 2,
                "dispatchThrottlingRateInByte": 3,
                "dispatchThrottlingRatePerTopicInMsg": 4,
                "dispatchThrottlingRatePerSubscriptionInByte": 5,
                "dispatchThrottlingRateRelativeToPublishRate": True,
                "subscribeThrottlingRatePerConsumer": 6,
                "subscribeRatePeriodPerConsumerInSecond": 7,
            }
        )
    )
    assert settings.publish_rate == PublishRate(1, 0)
    assert settings.is_publishing_limited_by_broker
    assert settings.dispatch.is_limited_by_broker
    assert settings.dispatch.topic_rate == DispatchRate(4, 0, is_relative_to_publish_rate=True)
    assert settings.dispatch.subscription_rate == DispatchRate(
        0, 5, is_relative_to_publish_rate=True
    )
    assert settings.subscribe_rate == SubscribeRate(6, 7)


@pytest.mark.parametrize("name", RateSettings.declared())
def test_rates_stand_together(name: str) -> None:
    assert RateSettings.declared()[name].category == RATES
    assert name in BrokerConfig.declared()
