from __future__ import annotations

import json

import pytest

from pulsar_py.server.load.averages import (
    LONG_SAMPLES,
    UNREPORTED,
    BundleData,
    data_of_quota,
    decode_bundle_data,
    encode_broker_average,
)
from pulsar_py.server.load.broker_report import BundleStats


def stats(rate: float) -> BundleStats:
    return BundleStats(messages_in_rate=rate, bytes_in_rate=10 * rate, topics_count=3)


def test_the_first_report_replaces_what_was_assumed() -> None:
    assert UNREPORTED.long.messages_rate == 100.0
    data = UNREPORTED.with_sample(stats(7))
    assert (data.short.messages_rate, data.long.bytes_rate, data.topics_count) == (7, 70, 3)


def test_means_are_of_the_last_ten_and_of_the_last_thousand() -> None:
    data = UNREPORTED
    for _ in range(50):
        data = data.with_sample(stats(100))
    assert (data.short.samples_count, data.long.samples_count) == (10, 50)
    data = data.with_sample(stats(0))
    assert data.short.messages_rate == pytest.approx(90)
    assert data.long.messages_rate == pytest.approx(100 * 50 / 51)


def test_the_stored_form_is_apaches() -> None:
    """`/loadbalance/bundle-data`: BundleData with two TimeAverageMessageData."""
    data = UNREPORTED.with_sample(stats(5))
    document = json.loads(data.encode())
    assert list(document) == ["shortTermData", "longTermData", "topics"]
    assert document["longTermData"] == {
        "maxSamples": 1000,
        "numSamples": 1,
        "msgThroughputIn": 50.0,
        "msgThroughputOut": 0.0,
        "msgRateIn": 5.0,
        "msgRateOut": 0.0,
    }
    assert decode_bundle_data(data.encode()) == data


@pytest.mark.parametrize("value", [b"", b"[1]", b"{"])
def test_what_is_no_object_is_nothing(value: bytes) -> None:
    assert decode_bundle_data(value) is None
    assert data_of_quota(value) is None


def test_numbers_that_can_not_be_are_put_right() -> None:
    found = decode_bundle_data(b'{"longTermData":{"maxSamples":0,"numSamples":-3,"msgRateIn":"x"}}')
    assert found is not None
    assert (found.long.max_samples, found.long.samples_count) == (1, 0)
    assert found.long.messages_in_rate == UNREPORTED.long.messages_in_rate


def test_a_quota_counts_like_a_long_history() -> None:
    found = data_of_quota(b'{"msgRateIn":40,"msgRateOut":120.0,"bandwidthIn":1000}')
    assert found is not None
    assert found.long.samples_count == LONG_SAMPLES
    assert (found.long.messages_rate, found.long.bytes_rate) == (160.0, 1000.0)
    assert found.with_sample(stats(0)).long.messages_rate == pytest.approx(160 * 0.999)


def test_a_broker_has_the_sums_of_its_bundles() -> None:
    """`/loadbalance/broker-time-average`: the eight keys of TimeAverageBrokerData."""
    some = [BundleData().with_sample(stats(rate)) for rate in (1, 2)]
    assert json.loads(encode_broker_average(some)) == {
        "shortTermMsgThroughputIn": 30.0,
        "shortTermMsgThroughputOut": 0.0,
        "shortTermMsgRateIn": 3.0,
        "shortTermMsgRateOut": 0.0,
        "longTermMsgThroughputIn": 30.0,
        "longTermMsgThroughputOut": 0.0,
        "longTermMsgRateIn": 3.0,
        "longTermMsgRateOut": 0.0,
    }
