"""Findings say where."""

from __future__ import annotations

import pytest

from pulsar_py.common.errors import CorruptDataError
from pulsar_py.common.findings import Finding, no_progress


@pytest.mark.parametrize(
    ("message", "finding"),
    [
        ("a/1: offset 12: broken: so", Finding("a/1", 12, "broken: so")),
        ("a/1: broken", Finding("a/1", None, "broken")),
        ("broken", Finding("other", None, "broken")),
    ],
)
def test_an_error_becomes_a_finding(message: str, finding: Finding) -> None:
    assert Finding.of(CorruptDataError(message), "other") == finding


def test_its_text() -> None:
    assert str(Finding("a", 3, "b")) == "a: offset 3: b"
    assert str(Finding("a", None, "b")) == "a: b"
    no_progress("a", 3)
