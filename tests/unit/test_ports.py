"""ports: which of them a broker has."""

from __future__ import annotations

import pytest

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.ports import PortNumbers


@pytest.mark.parametrize(
    "numbers",
    [
        PortNumbers(binary=1, http=2),
        PortNumbers(binary=None, binary_tls=1, http=None, http_tls=2),
        PortNumbers(binary=0, http_tls=0),
    ],
)
def test_one_of_each_protocol_is_enough(numbers: PortNumbers) -> None:
    numbers.check()


def test_an_only_port_is_changed_by_the_option_of_the_command_line() -> None:
    alone = PortNumbers(binary=None, binary_tls=1, http=None, http_tls=2)
    assert alone.binary_tls_hint == "brokerServicePortTls, --port"
    assert alone.http_tls_hint == "webServicePortTls, --web-port"
    beside = PortNumbers(binary=3, binary_tls=1, http=4, http_tls=2)
    assert beside.binary_tls_hint == "brokerServicePortTls"
    assert beside.http_tls_hint == "webServicePortTls"


@pytest.mark.parametrize(
    ("numbers", "name"),
    [
        (PortNumbers(binary=None, http=1), "brokerServicePortTls"),
        (PortNumbers(binary=1), "webServicePortTls"),
    ],
)
def test_a_protocol_without_a_port_is_refused(numbers: PortNumbers, name: str) -> None:
    with pytest.raises(ConfigurationError, match=name):
        numbers.check()
