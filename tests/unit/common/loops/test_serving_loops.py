"""Which loops brokers run in."""

from __future__ import annotations

import asyncio

from pulsar_py import Broker
from pulsar_py.common.loops.serving_loops import served_by, serves, serves_no_more


def test_the_newest_broker_of_a_loop_is_named() -> None:
    loop = asyncio.new_event_loop()
    assert served_by(loop) is None
    serves(loop, "pulsar://a:1")
    serves(loop, "pulsar://b:1")
    assert served_by(loop) == "pulsar://b:1"
    serves_no_more(loop, "pulsar://b:1")
    serves_no_more(loop, "pulsar://b:1")
    assert served_by(loop) == "pulsar://a:1"
    loop.close()


async def test_a_broker_enters_its_loop_and_leaves_it() -> None:
    loop = asyncio.get_running_loop()
    async with Broker() as broker:
        assert served_by(loop) == broker.service_url
    assert served_by(loop) is None
