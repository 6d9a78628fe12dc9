"""Words about tenants, groups, quotas and bookies send and print what pulsar-admin does."""

from __future__ import annotations

from tests.unit.cli.admin.replayed import differences, run


def test_what_was_recorded() -> None:
    assert not differences("tenants", "resourcegroups", "resource-quotas", "bookies")


def test_a_namespace_without_a_bundle_is_refused() -> None:
    server, done = run("resource-quotas", "get", "-n", "t/n")
    assert done.exit_code == 2
    assert "belong together" in done.stderr
    assert not server.requests
