"""What Apache BookKeeper wrote and answered, for the tests of what is bytes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

# Any: JSON of our own, looked into by tests alone.
RECORDED: dict[str, Any] = json.loads(
    (Path(__file__).parents[2] / "recordings" / "bookkeeper.json").read_text()
)
ENTRIES: list[dict[str, Any]] = RECORDED["entries"]
EXCHANGES: dict[str, dict[str, Any]] = {each["name"]: each for each in RECORDED["exchanges"]}
