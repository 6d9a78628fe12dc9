"""The README's example of a killed broker: a real file goes through it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "file_through_a_killed_broker.py"


def test_a_file_comes_back_complete_and_in_order_after_kill_9(tmp_path: Path) -> None:
    result = subprocess.run(
        [sys.executable, str(EXAMPLE), "--directory", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )

    assert result.returncode == 0, result.stdout + result.stderr
    assert "100000 lines came back, complete and in order" in result.stdout
