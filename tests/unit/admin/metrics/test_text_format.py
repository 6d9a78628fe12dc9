"""Lines of the text format."""

from __future__ import annotations

from pulsar_py.admin.metrics.text_format import (
    LINES_A_CHUNK,
    chunks,
    labels_text,
    line,
    number,
    type_line,
)


def test_labels_are_escaped() -> None:
    assert labels_text({"a": 'x"y', "b": "1\n2\\"}) == 'a="x\\"y",b="1\\n2\\\\"'


def test_a_line_and_its_type() -> None:
    name = "pulsar_rate_in"
    assert type_line(name, "gauge") + line(name, '{b="c"}', 2.0) == (
        "# HELP pulsar_rate_in Messages published a second.\n"
        "# TYPE pulsar_rate_in gauge\n"
        'pulsar_rate_in{b="c"} 2\n'
    )


def test_numbers_keep_all_their_digits() -> None:
    assert number(1_700_000_000_123.0) == "1700000000123"
    assert number(2**53) == "9007199254740992"
    assert float(number(0.1 + 0.2)) == 0.1 + 0.2
    assert number(True) == "1"


def test_chunks_of_zeros_read_as_those_of_numbers() -> None:
    labels = [f'{{n="{i}"}}' for i in range(LINES_A_CHUNK + 2)]
    zeros = [0.0] * len(labels)
    one = [*zeros[:-1], 1.5]
    assert "".join(chunks("a", labels, zeros)).splitlines() == [f"a{each} 0" for each in labels]
    pieces = list(chunks("a", labels, one))
    assert [piece.count("\n") for piece in pieces] == [LINES_A_CHUNK, 2]
    assert pieces[-1].splitlines() == [f"a{labels[-2]} 0", f"a{labels[-1]} 1.5"]
    assert not list(chunks("a", [], []))
