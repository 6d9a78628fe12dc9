"""The connection of a running pipeline with its caller: a request to stop, and a reporter.

The command line makes one for each run. A pipeline's function that gets none makes a silent one.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from pulsar_py.pipeline.running.progress import Reporter, Silent, Step, Value
from pulsar_py.pipeline.settings.secrets import Redactor


class StoppedError(Exception):
    """The pipeline was asked to stop before it had finished."""


@dataclass(frozen=True, slots=True)
class Watch:
    """A request to stop, and the reporter of progress."""

    reporter: Reporter = field(default_factory=Silent)
    stop: threading.Event = field(default_factory=threading.Event)
    redactor: Redactor = field(default_factory=lambda: Redactor(()))
    """Masks secrets in what is reported."""

    def report(
        self,
        event: str,
        *,
        done: int | None = None,
        total: int | None = None,
        **fields: Value,
    ) -> None:
        """Report a step, with secrets masked in its texts."""
        shown = {
            name: self.redactor.redacted(value) if isinstance(value, str) else value
            for name, value in fields.items()
        }
        self.reporter.report(Step(event=event, done=done, total=total, fields=shown))
