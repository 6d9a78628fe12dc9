"""Reads and writes are refused before Spark is started: by options alone, and by a broker."""

from __future__ import annotations

import pytest

from pulsar_py.common.errors import ConfigurationError, TopicNotFoundError
from pulsar_py.spark.checks import check_read, check_write
from pulsar_py.testing.broker_thread import BrokerThread

NOWHERE = {"service.url": "pulsar://127.0.0.1:1", "admin.url": "http://127.0.0.1:1"}


def test_options_are_checked_before_a_broker_is_asked() -> None:
    with pytest.raises(ConfigurationError, match="did you mean 'topic'"):
        check_read({**NOWHERE, "topci": "t"}, is_streaming=True)
    with pytest.raises(ConfigurationError, match="unknown option"):
        check_write({**NOWHERE, "topci": "t"})


def test_at_least_once_asks_nobody() -> None:
    check_write({**NOWHERE, "topic": "t", "deliveryGuarantee": "at-least-once"})


def test_who_waits_for_topics_asks_nobody() -> None:
    options = {**NOWHERE, "topic": "t", "waitingForNonExistedTopic": "true"}
    check_read(options, is_streaming=True)


@pytest.mark.parametrize("is_enabled", [True, False])
def test_a_broker_is_asked(*, is_enabled: bool) -> None:
    with BrokerThread(config={"brokerDeduplicationEnabled": is_enabled}) as broker:
        urls = {"service.url": broker.service_url, "admin.url": broker.web_service_url}
        with pytest.raises(TopicNotFoundError, match="nosuch: there is no such topic"):
            check_read({**urls, "topic": "nosuch"}, is_streaming=False)
        written = {
            **urls,
            "topic": "t",
            "deliveryGuarantee": "exactly-once",
            "sequenceOrder": "input",
        }
        if is_enabled:
            check_write(written)
            check_write(written)
        else:
            expected = (
                r"Disabled.*pulsar-py admin namespaces set-deduplication --enable public/default\)"
                r".*brokerDeduplicationEnabled=true.*at-least-once"
            )
            with pytest.raises(ConfigurationError, match=expected):
                check_write(written)
        check_read({**urls, "topic": "t"}, is_streaming=True)
