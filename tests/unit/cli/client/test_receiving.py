"""How messages are printed; receiving is in test_command."""

from __future__ import annotations

from pulsar_py.cli.client import receiving
from pulsar_py.schema import KeyValue


def test_values_become_what_json_can_have() -> None:
    value = {"a": [b"x", b"\xff"], "b": KeyValue("k", {"c": None})}
    assert receiving._plain(value) == {
        "a": ["x", "/w=="],
        "b": {"key": "k", "value": {"c": None}},
    }


def test_options_that_are_not_given_are_left_to_the_client() -> None:
    given = {
        "encryption_key_value": None,
        "schema_type": "bytes",
        "queue_size": 0,
        "max_chunked_msg": 0,
        "auto_ack_chunk_q_full": False,
        "crypto_failure_action": "DISCARD",
    }
    assert set(receiving._common(given)) == {"schema", "crypto_failure_action"}
