"""Options of readers."""

from __future__ import annotations

import pytest

from pulsar_py.client.reading.reader_config import ReaderConfig
from pulsar_py.client.shared.enums import ConsumerType, KeySharedMode, SubscriptionMode
from pulsar_py.common.errors import InvalidConfigurationError


def test_a_reader_is_an_exclusive_consumer_without_stored_subscription() -> None:
    config = ReaderConfig(
        receiver_queue_size=7, reader_name="r", is_read_compacted=True
    ).to_consumer_config()
    assert config.consumer_type is ConsumerType.Exclusive
    assert config.subscription_mode is SubscriptionMode.NonDurable
    assert (config.receiver_queue_size, config.consumer_name) == (7, "r")
    assert config.is_read_compacted


def test_key_hash_ranges_make_a_sticky_policy() -> None:
    config = ReaderConfig(key_hash_ranges=[(0, 99)]).to_consumer_config()
    assert config.key_shared_policy is not None
    assert config.key_shared_policy.key_shared_mode is KeySharedMode.Sticky
    assert ReaderConfig().to_consumer_config().key_shared_policy is None


def test_a_rollback_is_handed_on() -> None:
    config = ReaderConfig(start_message_from_rollback_duration_seconds=60)
    assert config.is_start_by_time
    assert config.to_consumer_config().start_message_rollback_duration_seconds == 60


def test_two_starts_by_time_exclude_each_other() -> None:
    with pytest.raises(InvalidConfigurationError, match="exclude each other"):
        ReaderConfig(
            start_message_from_rollback_duration_seconds=60, start_message_from_timestamp_millis=1
        )


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"subscription_name": ""}, "subscription_name"),
        ({"key_hash_ranges": []}, "sticky_ranges"),
        ({"receiver_queue_size": -1}, "receiver_queue_size"),
    ],
)
def test_bad_options_are_named(options: dict[str, object], why: str) -> None:
    with pytest.raises(InvalidConfigurationError, match=why):
        ReaderConfig(**options).to_consumer_config()  # type: ignore[arg-type] # wrong on purpose
