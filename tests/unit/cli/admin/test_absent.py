"""Groups that have no place here say so."""

from __future__ import annotations

import pytest

from pulsar_py.cli.admin.absent import ABSENT
from tests.unit.admin_client.recorded_calls import recording
from tests.unit.cli.admin.replayed import run

RECORDED = recording()["words"]
OTHER_NAMES = {"source": "sources", "sink": "sinks"}
"""Second names of groups."""
NOT_RECORDED = {"documents": {"generate": {"options": []}}}
"""What `pulsar-admin documents --help` says: the group runs no call, which is what was recorded."""


@pytest.mark.parametrize("group", ABSENT)
def test_each_word_says_why_and_ends_with_1(group: str) -> None:
    words = ABSENT[group][1].split()
    theirs = NOT_RECORDED.get(group) or RECORDED[OTHER_NAMES.get(group, group)]
    assert set(words) == set(theirs)
    for word in words:
        options = [each["names"][0] for each in theirs[word]["options"]]
        server, done = run(group, word, *options[:3], "x")
        assert done.exit_code == 1
        assert done.stderr == f"Error: {group} {word}: {ABSENT[group][0]}\n"
        assert not server.requests


def test_a_word_that_nobody_knows_is_refused() -> None:
    _, done = run("functions", "nosuch")
    assert done.exit_code == 2
