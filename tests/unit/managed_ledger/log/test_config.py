"""ManagedLedgerConfig: defaults are those of broker.conf."""

import pytest

from pulsar_py.managed_ledger.log.config import ManagedLedgerConfig


def test_defaults_are_pulsars():
    config = ManagedLedgerConfig()
    assert config.max_entries_per_ledger == 50_000
    assert config.minimum_rollover_seconds == 600
    assert (config.retention_seconds, config.retention_size_bytes) == (0, 0)
    assert config.cursor_persist_interval_seconds == 1.0


def test_it_is_replaced_and_never_changed():
    with pytest.raises(AttributeError):
        ManagedLedgerConfig().retention_seconds = 1


def test_without_retention_each_of_its_rules_is_off():
    rules = [name for name in ManagedLedgerConfig.__struct_fields__ if "retain" in name]
    rules += [name for name in ManagedLedgerConfig.__struct_fields__ if "retention" in name]
    config = ManagedLedgerConfig(**dict.fromkeys(rules, 7))
    defaults = ManagedLedgerConfig()

    kept = [
        name
        for name in rules
        if getattr(config.without_retention(), name) != getattr(defaults, name)
    ]

    assert len(rules) > 1
    assert kept == [], f"{kept} still keep data: switch them off in without_retention()"
