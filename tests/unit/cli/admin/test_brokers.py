"""Words about brokers and transactions send and print what pulsar-admin does."""

from __future__ import annotations

from tests.unit.cli.admin.replayed import Fake, differences, run


def test_what_was_recorded() -> None:
    assert not differences("brokers", "broker-stats", "transactions")


def test_one_coordinator_is_an_object() -> None:
    server = Fake({"transactions/coordinatorStats": {"state": "Ready", "leastSigBits": 4}})
    _, done = run("transactions", "coordinator-stats", "-c", "0", fake=server)
    assert done.stdout == '{\n  "state" : "Ready",\n  "leastSigBits" : 4\n}\n'


def test_there_is_at_least_one_coordinator() -> None:
    server, done = run("transactions", "scale-transactionCoordinators", "-r", "0")
    assert done.exit_code == 2
    assert "more than 0" in done.stderr
    assert not server.requests
