"""What is done already may be awaited."""

from __future__ import annotations

import asyncio

from pulsar_py.common.loops.finished import FINISHED


def test_awaiting_it_returns_at_once_and_again() -> None:
    async def work() -> list[object]:
        left = [await FINISHED, await FINISHED]
        return left + await asyncio.gather(FINISHED, FINISHED)

    assert asyncio.run(work()) == [None] * 4
