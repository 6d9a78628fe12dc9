"""Lines that a child process writes."""

from __future__ import annotations

import queue
import subprocess
import sys

from pulsar_py.pipeline.running.java_output import lines_handed_on

PATIENCE_SECONDS = 30.0


def test_each_line_is_handed_on_also_after_the_start() -> None:
    lines: queue.Queue[str] = queue.Queue()
    program = "import sys; input(); sys.stderr.buffer.write(b'one\\ntw\\xff\\n\\nthree')"
    with lines_handed_on(lines.put) as writing:
        child = subprocess.Popen([sys.executable, "-c", program], stdin=-1, stderr=writing)
    child.communicate(b"go\n")
    found = [lines.get(timeout=PATIENCE_SECONDS) for _ in range(4)]
    assert found == ["one", "tw\N{REPLACEMENT CHARACTER}", "", "three"]


def test_a_child_does_not_wait_where_nobody_can_be_told() -> None:
    def refuse(_line: str) -> None:
        raise BrokenPipeError

    program = "import sys; sys.stderr.write('much\\n' * 100_000)"  # more than a pipe holds
    with lines_handed_on(refuse) as writing:
        child = subprocess.Popen([sys.executable, "-c", program], stderr=writing)
    assert child.wait(PATIENCE_SECONDS) == 0
