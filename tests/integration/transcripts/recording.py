"""The recorded conversations, as read from `tests/recordings/transcripts.json`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

RECORDING = Path(__file__).parents[2] / "recordings" / "transcripts.json"

Step = Mapping[str, Any]  # Any: steps are JSON, their keys are those that `player` plays.


@dataclass(frozen=True, slots=True)
class Scenario:
    """One conversation."""

    name: str
    group: str
    about: str
    settings: str
    steps: tuple[Step, ...]
    accident: str | None = None


@dataclass(frozen=True, slots=True)
class Recording:
    """The whole file."""

    settings: Mapping[str, tuple[str, ...]]
    rules: Mapping[str, str]  # "TYPE.field" -> rule
    texts: frozenset[str]  # "TYPE.field" of texts for people
    scenarios: Mapping[str, Scenario]


def load_recording(path: Path = RECORDING) -> Recording:
    """Read the file."""
    data = json.loads(path.read_text())
    scenarios = [
        Scenario(
            name=item["name"],
            group=item["group"],
            about=item["about"],
            settings=item["settings"],
            steps=tuple(item["steps"]),
            accident=item.get("accident"),
        )
        for item in data["scenarios"]
    ]
    return Recording(
        settings={name: tuple(lines) for name, lines in data["settings"].items()},
        rules=dict(line.split(": ", 1) for line in data["any_value_accepted"]),
        texts=frozenset(data["texts_for_people"]),
        scenarios={scenario.name: scenario for scenario in scenarios},
    )
