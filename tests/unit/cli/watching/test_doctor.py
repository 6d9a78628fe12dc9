"""`pulsar-py doctor`, and the command it names for a paused subscription."""

from __future__ import annotations

import json
import urllib.request

from click.testing import CliRunner, Result

from pulsar_py.cli.commands import main
from pulsar_py.testing import BrokerThread


def run(broker: BrokerThread, *words: str) -> Result:
    return CliRunner().invoke(main, [*words, "--admin-url", broker.web_service_url])


def test_a_paused_subscription_is_cured_by_the_command_that_is_named() -> None:
    with BrokerThread() as broker:
        url = f"{broker.web_service_url}/admin/v2/persistent/public/default/t/subscription/s"
        urllib.request.urlopen(urllib.request.Request(url, method="PUT")).close()
        assert run(broker, "subscription", "pause", "t", "s").exit_code == 0
        found = run(broker, "doctor", "s", "--topic", "t", "-o", "json")
        assert found.exit_code == 1
        (reason, *_) = json.loads(found.stdout)["reasons"]
        program, *words = reason["command"].split()
        assert (reason["code"], program) == ("PAUSED", "pulsar-py")
        assert run(broker, *words).exit_code == 0
        assert "paused" not in run(broker, "doctor", "s", "--topic", "t").output
        assert run(broker, "doctor").exit_code == 0


def test_what_cannot_be_done_is_one_line() -> None:
    result = CliRunner().invoke(main, ["doctor", "--admin-url", "http://localhost:1"])
    assert (result.exit_code, result.output.count("\n")) == (1, 1)
    assert CliRunner().invoke(main, ["doctor", "--topic", "t"]).exit_code == 2
