"""Playbooks: tests as text files of commands to a decider and of its expected answers.

    # A comment, kept as it is.
    ack 1:0 1:2
    ----
    mark-delete 1:0   individual [(1:1..1:2]]

A block is lines of commands, a line of four dashes, and what they answered, up to an empty line or
the end. `check_playbook` runs all blocks of a file through one `execute` function, in order, and
either compares or, with `--rewrite`, replaces the answers in the file: the diff of the file is
then what gets reviewed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

SEPARATOR = "----"

Execute = Callable[[str], str]
"""Executes one line of commands; returns its answer, empty for none."""


@dataclass(slots=True)
class Block:
    """Commands and their answer; without commands only comments and empty lines."""

    before: list[str] = field(default_factory=list)  # comments and empty lines, as they are
    commands: list[str] = field(default_factory=list)
    expected: list[str] = field(default_factory=list)

    def text(self) -> str:
        """The block as it stands in the file."""
        lines = list(self.before)
        if self.commands:
            lines += [*self.commands, SEPARATOR, *self.expected]
        return "\n".join(lines)


def parse_playbook(text: str) -> list[Block]:
    """The blocks of a playbook.

    Raises:
        ValueError: Commands are not followed by a line of four dashes.
    """
    blocks: list[Block] = []
    block = Block()
    is_answer = False
    for number, line in enumerate(text.splitlines(), 1):
        if is_answer and line.strip():
            block.expected.append(line)
        elif is_answer:
            blocks.append(block)
            block, is_answer = Block(before=[line]), False
        elif line.strip() == SEPARATOR:
            is_answer = True
        elif line.startswith("#") or not line.strip():
            if block.commands:
                raise ValueError(f"line {number}: commands without {SEPARATOR}")
            block.before.append(line)
        else:
            block.commands.append(line)
    if block.commands and not is_answer:
        raise ValueError(f"commands without {SEPARATOR} at the end")
    blocks.append(block)
    return blocks


def answer(execute: Execute, commands: Iterable[str]) -> list[str]:
    """The answers to the commands of one block, as lines."""
    answers = [execute(command) for command in commands]
    return [line for text in answers for line in text.splitlines() if line]


def check_playbook(path: Path, execute: Execute, *, is_rewriting: bool = False) -> None:
    """Run a playbook file and compare, or rewrite it.

    Raises:
        AssertionError: An answer differs; the message has both.
    """
    blocks = parse_playbook(path.read_text())
    for block in blocks:
        got = answer(execute, block.commands)
        if is_rewriting:
            block.expected = got
            continue
        if got != block.expected:  # Not an assert: pytest would rewrite the message.
            lines = [*block.commands, SEPARATOR, *got, "instead of:", *block.expected]
            raise AssertionError("\n".join([f"{path.name}:", *lines]))
    if is_rewriting:
        path.write_text("\n".join(block.text() for block in blocks).rstrip() + "\n")
