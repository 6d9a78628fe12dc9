"""The page of a report."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest

from pulsar_py.pipeline.measuring.traffic import (
    MAX_BUCKETS,
    Backlog,
    Bucket,
    Traffic,
    bucket_seconds,
    filled,
    page,
)

TRAFFIC = Traffic(
    topic="persistent://a/b/<t>",
    made_millis=100_000,
    messages=30,
    size_bytes=3000,
    first_millis=10_000,
    last_millis=13_000,
    bucket_seconds=1,
    buckets=[Bucket(13, 10, 1000), Bucket(10, 20, 2000)],
    sizes={-1: 1, 6: 29},
    keys_count=2,
    top_keys=[("k", 20), ("l", 5)],
    without_key=5,
    lateness={-1: 1, 0: 2, 86_400: 3},
    partitions=[("t-partition-0", 10), ("t-partition-1", 20)],
    backlogs=[Backlog("slow", 5, 20, 40_000), Backlog("quick", 0, 0, None)],
)
NOTHING = Traffic(
    topic="t",
    made_millis=0,
    messages=0,
    size_bytes=0,
    first_millis=0,
    last_millis=0,
    bucket_seconds=1,
    buckets=[],
    sizes={},
    keys_count=0,
    top_keys=[],
    without_key=0,
    lateness={},
    partitions=[],
    backlogs=[],
)


class Outline(HTMLParser):
    """Tags, and addresses of anything that would be loaded."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.loaded += [value or "" for name, value in attrs if name in {"src", "href"}]


def test_the_page_stands_alone() -> None:
    outline = Outline(page(TRAFFIC))
    assert outline.tags.count("svg") == 7
    assert "script" not in outline.tags
    assert not outline.loaded


def test_what_is_on_the_page() -> None:
    text = page(TRAFFIC)
    assert "&lt;t&gt;" in text
    assert "slow (1m old)" in text
    assert "event in the future" in text
    assert "1d and more" in text


def test_a_page_of_nothing() -> None:
    text = page(NOTHING)
    assert "no messages" in text
    assert "<svg" not in text


def test_times_without_messages_are_shown() -> None:
    assert [each.messages for each in filled(TRAFFIC.buckets, 1)] == [20, 0, 0, 10]
    assert filled([], 1) == []


@pytest.mark.parametrize("span_seconds", [0, 100, 86_400, 90 * 86_400, 4000 * 86_400])
def test_there_are_not_too_many_columns(span_seconds: int) -> None:
    length = bucket_seconds(0, span_seconds * 1000)
    assert span_seconds / length <= MAX_BUCKETS


def test_times_say_their_zone() -> None:
    assert "1970-01-01 00:01:40 UTC" in page(TRAFFIC)
