"""`pulsar-py broker drain`."""

from __future__ import annotations

from click.testing import CliRunner

from pulsar_py.cli.commands import main
from pulsar_py.testing import BrokerThread


def test_a_broker_that_nobody_could_follow_is_not_drained() -> None:
    with BrokerThread() as broker:
        words = ["broker", "drain", "--admin-url", broker.web_service_url]
        result = CliRunner().invoke(main, words)
    assert (result.exit_code, result.output.count("\n")) == (1, 1)
    assert (
        "409 this broker belongs to no cluster: no other one could take its topics" in result.output
    )
