"""The short form of fuzzing: the inputs that went wrong once, all good ones, and some changed ones."""

from __future__ import annotations

import pytest

from tests.fuzz.kept import kept
from tests.fuzz.run import Kind, fuzz
from tests.fuzz.targets import KINDS

INPUTS = 2_000


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
async def test_nothing_goes_wrong(kind: Kind) -> None:
    report = await fuzz(kind, inputs_count=INPUTS, seed=31, kept=kept(kind.name))
    assert report.inputs_count == INPUTS
    # Milliseconds are looked at by `make fuzz`, on a machine that does nothing else.
    wrong = [each for each in report.findings if not each.problem.startswith("took ")]
    assert not wrong, "\n".join(f"{each.data[:300]!r}: {each.problem}" for each in wrong)
