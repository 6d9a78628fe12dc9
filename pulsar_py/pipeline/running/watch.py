"""What a running pipeline is given from outside: when to stop, and whom to tell.

Made by whoever starts a pipeline; functions of pipelines that get none make a silent one.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from pulsar_py.pipeline.running.progress import Reporter, Silent, Step, Value
from pulsar_py.pipeline.settings.secrets import Redactor


class StoppedError(Exception):
    """The pipeline was asked to stop before it was through."""


@dataclass(frozen=True, slots=True)
class Watch:
    """A wish to stop, and a reporter."""

    reporter: Reporter = field(default_factory=Silent)
    stop: threading.Event = field(default_factory=threading.Event)
    redactor: Redactor = field(default_factory=lambda: Redactor(()))
    """Takes secrets out of what is told."""

    def report(
        self,
        event: str,
        *,
        done: int | None = None,
        total: int | None = None,
        **fields: Value,
    ) -> None:
        """Tell of a step."""
        shown = {
            name: self.redactor.redacted(value) if isinstance(value, str) else value
            for name, value in fields.items()
        }
        self.reporter.report(Step(event=event, done=done, total=total, fields=shown))
