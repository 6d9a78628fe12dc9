"""Reports of a watch."""

from __future__ import annotations

from pulsar_py.pipeline.running.progress import Step
from pulsar_py.pipeline.running.watch import Watch
from pulsar_py.pipeline.settings.secrets import Redactor


class Steps:
    def __init__(self) -> None:
        self.steps: list[Step] = []

    def report(self, step: Step) -> None:
        self.steps.append(step)

    def close(self) -> None:
        pass


def test_what_is_reported_comes_as_a_step() -> None:
    steps = Steps()
    Watch(steps).report("batch", done=3, rows=3)
    assert steps.steps == [Step(event="batch", done=3, fields={"rows": 3})]


def test_nobody_wants_it_to_stop_at_first() -> None:
    assert not Watch().stop.is_set()


def test_secrets_are_taken_out_of_what_is_told() -> None:
    steps = Steps()
    Watch(steps, redactor=Redactor(["abcd"])).report("failed", reason="no abcd", rows=3)
    assert steps.steps == [Step(event="failed", fields={"reason": "no ***", "rows": 3})]
