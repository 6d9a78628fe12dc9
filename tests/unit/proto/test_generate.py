"""The committed modules are what `make proto` would write."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def test_nothing_is_stale() -> None:
    pytest.importorskip("grpc_tools", reason="comes with the dev extra")
    result = subprocess.run(
        [sys.executable, ROOT / "proto" / "generate.py", "--check"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert result.returncode == 0, result.stderr


def test_every_message_and_enum_has_a_comment() -> None:
    bare = []
    for path in sorted((ROOT / "proto").glob("*.proto")):
        previous = ""
        for line in path.read_text().splitlines():
            text = line.strip()
            if text.startswith(("message ", "enum ")) and not previous.startswith("//"):
                bare.append(f"{path.name}: {text}")
            previous = text
    assert bare == []
