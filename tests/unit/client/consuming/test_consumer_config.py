from __future__ import annotations

import inspect

import pulsar
import pytest

from pulsar_py.client.consuming.consumer_config import ConsumerConfig
from pulsar_py.client.shared.enums import ConsumerType, SubscriptionMode
from pulsar_py.common.errors import InvalidConfigurationError


def test_names_and_defaults_are_the_official_client_s() -> None:
    ours = ConsumerConfig()
    for name, parameter in inspect.signature(pulsar.Client.subscribe).parameters.items():
        if name in {"self", "topic", "subscription_name"}:
            continue
        value = getattr(ours, name)
        if isinstance(parameter.default, int | bool):
            assert value == int(parameter.default), name
        elif name not in {"schema", "properties", "batch_receive_policy"}:
            assert (value is None) == (parameter.default is None) or int(value) == int(
                parameter.default
            ), name


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"receiver_queue_size": -1}, "receiver_queue_size: -1 is below 0"),
        ({"ack_grouping_max_size": 0}, "ack_grouping_max_size: 0 is below 1"),
        ({"unacked_messages_timeout_ms": 999}, "unacked_messages_timeout_ms: 999"),
        (
            {"unacked_messages_timeout_ms": 1000, "unacked_messages_tick_ms": 2000},
            "unacked_messages_tick_ms: 2000",
        ),
        (
            {"is_read_compacted": True, "consumer_type": ConsumerType.Shared},
            "is_read_compacted needs a consumer_type of Exclusive or Failover, not Shared",
        ),
    ],
)
def test_bad_options_are_named(options: dict[str, object], text: str) -> None:
    with pytest.raises(InvalidConfigurationError, match=text):
        ConsumerConfig(**options)


def test_an_unknown_option_is_an_error() -> None:
    with pytest.raises(TypeError, match="reciever_queue_size"):
        ConsumerConfig(reciever_queue_size=5)


def test_what_the_types_mean() -> None:
    assert not ConsumerConfig().is_shared
    assert ConsumerConfig(consumer_type=ConsumerType.KeyShared).is_shared
    assert ConsumerConfig().is_durable
    assert not ConsumerConfig(subscription_mode=SubscriptionMode.NonDurable).is_durable
    assert ConsumerConfig(unacked_messages_timeout_ms=0).unacked_messages_timeout_ms == 0
