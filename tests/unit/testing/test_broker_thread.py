"""A broker in a thread."""

from __future__ import annotations

import threading
import urllib.request

import pytest

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.testing.broker_thread import BrokerThread


def test_it_serves_a_blocking_test_and_ends_with_it() -> None:
    with BrokerThread() as broker:
        assert broker.service_url.startswith("pulsar://127.0.0.1:")
        with urllib.request.urlopen(broker.web_service_url + "/admin/v2/clusters") as answer:
            assert answer.read() == b'["standalone"]'
    assert "pulsar_py broker" not in {thread.name for thread in threading.enumerate()}


def test_start_raises_what_kept_the_broker_from_starting() -> None:
    with pytest.raises(ConfigurationError, match="noSuchSetting"):
        BrokerThread(config={"noSuchSetting": 1}).start()
