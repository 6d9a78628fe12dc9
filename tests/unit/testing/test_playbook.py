"""Playbooks: blocks are found, compared and rewritten."""

import pytest

from pulsar_py.testing.playbook import check_playbook, parse_playbook

TEXT = """# About this.

say one
say two
----
one
two

nothing
----

# The end.
"""


def execute(command):
    word, _, rest = command.partition(" ")
    return rest if word == "say" else ""


def test_blocks_have_comments_commands_and_answers():
    first, second, last = parse_playbook(TEXT)
    assert first.before == ["# About this.", ""]
    assert first.commands == ["say one", "say two"]
    assert first.expected == ["one", "two"]
    assert (second.commands, second.expected) == (["nothing"], [])
    assert last.commands == []


def test_a_right_playbook_passes(tmp_path):
    path = tmp_path / "book.txt"
    path.write_text(TEXT)
    check_playbook(path, execute)


def test_a_wrong_answer_fails_with_both(tmp_path):
    path = tmp_path / "book.txt"
    path.write_text(TEXT.replace("\ntwo\n", "\n2\n"))
    with pytest.raises(AssertionError, match="two\ninstead of:\none\n2"):
        check_playbook(path, execute)


def test_rewriting_replaces_only_answers(tmp_path):
    path = tmp_path / "book.txt"
    path.write_text(TEXT.replace("\ntwo\n", "\n2\n"))
    check_playbook(path, execute, is_rewriting=True)
    assert path.read_text() == TEXT


def test_commands_without_a_separator_are_refused():
    with pytest.raises(ValueError, match="without ----"):
        parse_playbook("say one\n")
