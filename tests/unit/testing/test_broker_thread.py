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
    assert broker.thread_name not in {thread.name for thread in threading.enumerate()}


def test_start_raises_what_kept_the_broker_from_starting() -> None:
    with pytest.raises(ConfigurationError, match="noSuchSetting"):
        BrokerThread(config={"noSuchSetting": 1}).start()


def test_wrong_options_are_refused_where_they_are_given() -> None:
    with pytest.raises(TypeError, match=r"^BrokerThread has no option prt, did you mean port"):
        BrokerThread(prt=1)  # type: ignore[call-arg] # that is the point
    with pytest.raises(ConfigurationError, match="noSuchSetting"):
        BrokerThread(config={"noSuchSetting": 1})


def test_a_restart_keeps_ports_and_data() -> None:
    with BrokerThread() as broker:
        url = f"{broker.web_service_url}/admin/v2/persistent/public/default/kept"
        with urllib.request.urlopen(urllib.request.Request(url, method="PUT")):
            pass
        broker.restart()
        assert url.startswith(broker.web_service_url)
        with urllib.request.urlopen(f"{url}/stats") as answer:
            assert answer.status == 200


def test_a_broker_that_does_not_run_can_not_be_restarted() -> None:
    with pytest.raises(RuntimeError, match="is not running"):
        BrokerThread().restart()


@pytest.mark.parametrize("name", ["service_url", "service_url_tls", "web_service_url"])
def test_a_broker_that_was_not_started_has_no_address(name: str) -> None:
    broker = BrokerThread()
    assert repr(broker) == "BrokerThread(no address yet, not running)"
    with pytest.raises(RuntimeError, match=r"not started: call start\(\), or use `with`"):
        getattr(broker, name)
