"""The settings of broker.conf for rates of publishing, dispatching and subscribing."""

# ruff: noqa: N815 - settings keep the names of broker.conf
from __future__ import annotations

from typing import Final

from pulsar_py.server.settings.declaring import Settings, setting

RATES: Final = "Rates"


class RateSettings(Settings):
    """Rates of the broker, and of topics without a policy of their own; 0 or less is no limit."""

    maxPublishRatePerTopicInMessages: int = setting(
        default=0, dynamic=True, category=RATES, doc="Messages a second that a topic takes."
    )
    maxPublishRatePerTopicInBytes: int = setting(
        default=0, dynamic=True, category=RATES, doc="Bytes a second that a topic takes."
    )
    brokerPublisherThrottlingMaxMessageRate: int = setting(
        default=0,
        dynamic=True,
        category=RATES,
        doc="Messages a second that all topics of the broker take together.",
    )
    brokerPublisherThrottlingMaxByteRate: int = setting(
        default=0,
        dynamic=True,
        category=RATES,
        doc="Bytes a second that all topics of the broker take together.",
    )
    dispatchThrottlingRateInMsg: int = setting(
        default=0,
        dynamic=True,
        category=RATES,
        doc="Messages a second that all consumers of the broker get together.",
    )
    dispatchThrottlingRateInByte: int = setting(
        default=0,
        dynamic=True,
        category=RATES,
        doc="Bytes a second that all consumers of the broker get together.",
    )
    dispatchThrottlingRatePerTopicInMsg: int = setting(
        default=0,
        dynamic=True,
        category=RATES,
        doc="Messages a second that a topic's consumers get.",
    )
    dispatchThrottlingRatePerTopicInByte: int = setting(
        default=0, dynamic=True, category=RATES, doc="Bytes a second that a topic's consumers get."
    )
    dispatchThrottlingRatePerSubscriptionInMsg: int = setting(
        default=0,
        dynamic=True,
        category=RATES,
        doc="Messages a second that a subscription's consumers get.",
    )
    dispatchThrottlingRatePerSubscriptionInByte: int = setting(
        default=0,
        dynamic=True,
        category=RATES,
        doc="Bytes a second that a subscription's consumers get.",
    )
    dispatchThrottlingRateRelativeToPublishRate: bool = setting(
        default=False,
        dynamic=True,
        category=RATES,
        doc="Whether the rates of topics and subscriptions come on top of the rate of publishing, "
        "as it was in the last minute.",
    )
    dispatchThrottlingOnBatchMessageEnabled: bool = setting(
        default=False,
        dynamic=True,
        category=RATES,
        doc="Whether a batch counts as one message for dispatch rates.",
    )
    dispatchThrottlingOnNonBacklogConsumerEnabled: bool = setting(
        default=True,
        dynamic=True,
        category=RATES,
        doc="Whether dispatch rates hold for subscriptions, too, that are less than 1000 entries "
        "behind.",
    )
    dispatchThrottlingForFilteredEntriesEnabled: bool = setting(
        default=False,
        category=RATES,
        doc="Whether entries that users' filters reject or put off count for dispatch rates.",
    )
    subscribeThrottlingRatePerConsumer: int = setting(
        default=0,
        dynamic=True,
        category=RATES,
        doc="How often a consumer may subscribe in the period below.",
    )
    subscribeRatePeriodPerConsumerInSecond: int = setting(
        default=30,
        minimum=1,
        dynamic=True,
        category=RATES,
        doc="Seconds of the period for which subscribing is counted.",
    )
