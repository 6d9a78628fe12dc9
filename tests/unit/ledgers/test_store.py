from __future__ import annotations

from pulsar_py.ledgers.store import LedgerOptions


def test_options_default_to_one_copy_without_password() -> None:
    options = LedgerOptions()
    assert (options.ensemble_size, options.write_quorum_size, options.ack_quorum_size) == (1, 1, 1)
    assert (options.password, dict(options.custom_metadata)) == (b"", {})
