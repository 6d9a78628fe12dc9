"""Patterns of others: what they match, and that none takes long."""

from __future__ import annotations

import time

import pytest

from pulsar_py.common.linear_patterns import linear_pattern


def test_a_pattern_is_found_or_is_all_there_is() -> None:
    pattern = linear_pattern("a+b")
    assert pattern.search("xaab!") is not None
    assert pattern.fullmatch("xaab!") is None
    assert pattern.fullmatch("aab") is not None


def test_what_takes_a_backtracking_matcher_minutes_is_matched_at_once() -> None:
    begin = time.process_time()
    assert linear_pattern("(a+)+c|a+b").fullmatch("a" * 60 + "b") is not None
    assert time.process_time() - begin < 5


@pytest.mark.parametrize("text", ["(", "(?=a)", r"(a)\1", "(" * 5000])
def test_what_cannot_be_matched_so_is_refused_with_words(text: str) -> None:
    with pytest.raises(ValueError, match="patterns are RE2's"):
        linear_pattern(text)
