"""The options of `admin`."""

from __future__ import annotations

from pulsar_py.cli.admin.options import OUTPUTS, AdminOptions


def test_nothing_is_confirmed_unless_it_is_said() -> None:
    options = AdminOptions({})
    assert options.output in OUTPUTS
    assert not options.is_confirmed
    assert not options.is_dry_run
