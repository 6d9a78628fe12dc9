"""Words about topics send and print what pulsar-admin does."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.cli.admin.replayed import Fake, differences, run

STATUS = "t/compaction"


def test_what_was_recorded() -> None:
    assert not differences("topics")


def test_a_pattern_deletes_what_it_matches_whole() -> None:
    names = [f"persistent://t/n/{each}" for each in ("ab", "abc", "b")]
    server, done = run("topics", "delete", "-r", "t/n/ab?", fake=Fake({"persistent/t/n": names}))
    assert done.exit_code == 0
    assert [path for method, path, *_ in server.requests if method == "DELETE"] == [
        "/admin/v2/persistent/t/n/ab"
    ]


def test_a_file_names_topics_to_delete(tmp_path: Path) -> None:
    file = tmp_path / "topics"
    file.write_text("persistent://t/n/a\npersistent://t/n/b\n")
    server, _ = run("topics", "delete", "--from-file", str(file))
    assert [path for _, path, *_ in server.requests] == [
        "/admin/v2/persistent/t/n/a",
        "/admin/v2/persistent/t/n/b",
    ]


@pytest.mark.parametrize(
    ("status", "said"),
    [
        ("NOT_RUN", "Compaction has not been run for t since broker startup\n"),
        ("RUNNING", "Compaction is currently running\n"),
    ],
)
def test_how_a_compaction_goes(status: str, said: str) -> None:
    _, done = run("topics", "compaction-status", "t", fake=Fake({STATUS: {"status": status}}))
    assert done.stdout == said


def test_a_compaction_that_failed_ends_with_1() -> None:
    server = Fake({STATUS: {"status": "ERROR", "lastError": "no room"}})
    _, done = run("topics", "compaction-status", "t", fake=server)
    assert done.exit_code == 1
    assert done.stderr == "Error: Error in compaction: no room\n"


def test_nothing_to_offload() -> None:
    server = Fake({"internalStats": {"ledgers": [{"ledgerId": 1, "size": 5}]}})
    _, done = run("topics", "offload", "-s", "10M", "t", fake=server)
    assert done.stdout == "Nothing to offload\n"
    server = Fake({"internalStats": {"ledgers": []}})
    _, done = run("topics", "offload", "-s", "10M", "t", fake=server)
    assert (done.exit_code, done.stderr) == (1, "Error: Topic doesn't have any data\n")


def test_the_newest_ledgers_stay() -> None:
    ledgers = [{"ledgerId": each, "size": 6} for each in (1, 2, 3)]
    stats = {"ledgers": ledgers, "currentLedgerSize": 6}
    server, done = run("topics", "offload", "-s", "10", "t", fake=Fake({"internalStats": stats}))
    assert server.requests[-1][3]["ledgerId"] == 2
    assert done.stdout == "Offload triggered for t for messages before 2:0:-1\n"


def test_a_shadow_of_a_topic_without_partitions_has_none() -> None:
    server = Fake({"partitions": {"partitions": 0}})
    run("topics", "create-shadow-topic", "-s", "a", "b", fake=server)
    method, path, _, body = server.requests[-1]
    assert (method, path) == ("PUT", "/admin/v2/persistent/public/default/b")
    assert body == {"PULSAR.SHADOW_SOURCE": "persistent://public/default/a"}
