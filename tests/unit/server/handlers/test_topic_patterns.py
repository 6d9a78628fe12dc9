from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from pulsar_py.common.errors import InvalidTopicNameError
from pulsar_py.server.handlers.topic_patterns import TopicPattern, topics_hash

TOPICS = [
    f"persistent://public/ns/{local}" for local in ("a", "b", "p-partition-0", "p-partition-1")
]


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("persistent://public/ns/[ab]", TOPICS[:2]),
        ("public/ns/[ab]", TOPICS[:2]),
        ("public/ns/p", TOPICS[2:]),
        ("public/ns/.*", TOPICS),
        (".*/a", TOPICS[:1]),
        ("a", []),
        ("public/ns/(a|p)", [TOPICS[0], *TOPICS[2:]]),
    ],
)
def test_pattern_matches_the_whole_name_without_domain_and_partition(
    pattern: str, found: list[str]
) -> None:
    assert TopicPattern(pattern).filter(TOPICS) == found


@pytest.mark.parametrize("pattern", ["wire-(", "*", "[", "(?=x)", r"(a)\1"])
def test_what_re2_does_not_take_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidTopicNameError, match=r"invalid topics pattern .*: [^b].* \(.*RE2"):
        TopicPattern(pattern)


def test_no_pattern_takes_long() -> None:
    pattern = TopicPattern("(x+x+)+y|.*.*.*.*.*.*.*.*.*.*z")
    before = time.process_time()
    assert not pattern.matches("persistent://public/ns/" + "x" * 5000)
    assert time.process_time() - before < 1


def test_hash_is_the_one_clients_compute() -> None:
    path = Path(__file__).parents[3] / "recordings" / "transcripts.json"
    recorded = json.loads(path.read_text())
    hashes = {
        tuple(command["fields"]["topics"]): command["fields"]["topics_hash"]
        for scenario in recorded["scenarios"]
        for step in scenario["steps"]
        for command in step.get("result", {}).get("commands", [])
        if command["type"] == "GET_TOPICS_OF_NAMESPACE_RESPONSE" and "topics" in command["fields"]
    }
    assert len(hashes) > 3
    for topics, expected in hashes.items():
        assert topics_hash(reversed(topics)) == expected
    assert topics_hash([]) == "00000000"
