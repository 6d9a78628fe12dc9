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
