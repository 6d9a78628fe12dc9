"""What is published of a command line; publishing is in test_command."""

from __future__ import annotations

from pathlib import Path

import pytest

from pulsar_py.cli.client.producing import contents, schema_named, value_of, wait_for_turn
from pulsar_py.testing.clock import VirtualClock, run_virtual


def test_contents_are_separated(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"\xff,")
    assert contents(["a,b", "c"], [f"{file},{file}"], ",") == [b"a", b"b", b"c", b"\xff,", b"\xff,"]
    assert contents(["a,b"], [], "") == [b"a,b"]
    assert contents(["a#b"], [], "#") == [b"a", b"b"]


@pytest.mark.parametrize("text", ["", "json", "json:", "xml:x", "int32"])
def test_a_schema_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected bytes, string"):
        schema_named(text)


def test_values_are_what_schemas_take() -> None:
    schema, is_json = schema_named("string")
    assert value_of(b"x", schema, is_json=is_json) == "x"
    schema, is_json = schema_named("bytes")
    assert value_of(b"x", schema, is_json=is_json) == b"x"
    definition = '{"type":"record","name":"r","fields":[{"name":"a","type":"int"}]}'
    schema, is_json = schema_named(f"avro:{definition}")
    assert value_of(b'{"a": 1}', schema, is_json=is_json) == {"a": 1}


def test_no_turn_comes_too_soon() -> None:
    async def turns(rate: float) -> float:
        clock = VirtualClock()
        start = clock.monotonic_seconds()
        for number in range(11):
            await wait_for_turn(clock, start, number, rate)
        return clock.monotonic_seconds() - start

    assert run_virtual(turns(5.0)) == pytest.approx(2.0)
    assert run_virtual(turns(0.0)) == 0
