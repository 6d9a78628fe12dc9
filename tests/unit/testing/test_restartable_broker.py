from __future__ import annotations

import inspect
from pathlib import Path
from typing import get_type_hints

import pytest

from pulsar_py.client import Client
from pulsar_py.common.errors import ConfigurationError
from pulsar_py.standalone import Broker
from pulsar_py.testing.restartable_broker import (
    BrokerOptions,
    RestartableBroker,
    check_option_names,
)


def test_options_are_those_of_a_broker() -> None:
    parameters = inspect.signature(Broker.__init__).parameters
    hints = get_type_hints(Broker.__init__)
    assert get_type_hints(BrokerOptions) == {
        name: hints[name] for name in parameters if name != "self"
    }


@pytest.mark.parametrize("in_memory", [True, False])
async def test_what_was_confirmed_is_there_after_a_restart_on_the_same_ports(
    tmp_path: Path,
    in_memory: bool,  # noqa: FBT001 - a parameter of pytest's
) -> None:
    async with RestartableBroker(data_dir=None if in_memory else tmp_path) as broker:
        urls = broker.service_url, broker.web_service_url
        async with Client(broker.service_url) as client:
            consumer = await client.subscribe("t", "s", ack_receipt_enabled=True)
            async with await client.create_producer("t") as producer:
                for content in (b"one", b"two"):
                    await producer.send(content)
            await consumer.acknowledge(await consumer.receive(30_000))
        for _ in range(2):
            await broker.restart()
            assert (broker.service_url, broker.web_service_url) == urls
        async with Client(broker.service_url) as client:
            consumer = await client.subscribe("t", "s")
            assert (await consumer.receive(30_000)).data() == b"two"


async def test_a_broker_that_was_stopped_comes_back() -> None:
    broker = RestartableBroker()
    await broker.start()
    await broker.stop()
    await broker.restart()
    await broker.service.check_health()
    await broker.stop()


def test_wrong_options_are_refused_where_they_are_given() -> None:
    with pytest.raises(TypeError, match=r"RestartableBroker has no option prt, did you mean port"):
        RestartableBroker(prt=1)  # type: ignore[call-arg] # that is the point
    with pytest.raises(TypeError, match="the marker has no option colour; it has data_dir,"):
        check_option_names(["colour"], "the marker")
    with pytest.raises(
        TypeError, match=r"the marker has no option settings, did you mean config\?"
    ):
        check_option_names(["settings"], "the marker")
    with pytest.raises(ConfigurationError, match="maxMessageSize"):
        RestartableBroker(config={"maxMesageSize": 1})
