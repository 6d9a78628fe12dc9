"""A row is one line of JSON, with names as JSON has them."""

from __future__ import annotations

import json

from pulsar_py.cli.answering.json_lines import in_camel_case, json_line


def test_names_of_a_row_are_in_camel_case_and_values_stay() -> None:
    row = {"last_entry": 1, "entries": [{"ledger_id": 2}], "is_last_in_row": True}
    assert in_camel_case(row) == {
        "lastEntry": 1,
        "entries": [{"ledger_id": 2}],
        "isLastInRow": True,
    }


def test_a_value_is_one_line_and_letters_stay_readable() -> None:
    value = {"topic": "größe", "text": "a\nb", "none": None}
    line = json_line(value)
    assert "\n" not in line
    assert "größe" in line
    assert json.loads(line) == value
