"""Every program of the client's guide runs against a broker, and says what it should."""

from __future__ import annotations

import asyncio
import importlib.util
import inspect
import re
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from pulsar_py.standalone import Broker
from tests.package_source import ROOT

EXAMPLES = ROOT / "examples" / "client"

SAYS = {
    "batch_receive": "250 rows in bulk",
    "credentials": r"\['persistent://public/default/anything'\]",
    "delayed": r"wake up after ([1-9]|10) seconds",  # a busy broker's tick; `receive` ends at 10
    "encryption": "the treasure is under the tree",
    "errors": r"ConsumerBusyError: True\nMessageTooBigError: True\n.*did you mean",
    "fail_at_once": r"can't start: ClientTimeoutError: .*localhost:1: .*refused\nstored: ",
    "figures": r"ProducerStatistics\(.*total_messages_sent=10,.*\nConsumerStatistics\(",
    "graceful_worker": "(?s)done: 0.*done: 2\nthe others go to another worker",
    "hello": r"hello \{\}\ngoodbye \{'from': 'me'\}",
    "keys": "one home each: True",
    "large_messages": "black square has 12582912 bytes",
    "listener": "listened to all of them",
    "many_topics": r"\['sensor-a', 'sensor-b'\]\n\['sensor-a', 'sensor-b', 'sensor-new'\]",
    "no_duplicates": "went on at line 2",
    "one_writer": "refused: ProducerFencedError\nhas its turn: False\nhas its turn: True",
    "produce_fast": "100000 messages, the last one is",
    "reader": "line 0\nline 1\nline 2\nline 3\nline 4\nafter a seek: line 3",
    "retry_later": "pay the rent again, retry 1",
    "schemas": r"Coffee\(kind='espresso', cents=190\)",
    "standby": r"(?s)a works.*b works.*entry 2 went to b",
    "synchronous": "stored up to entry .*\n1001 letters\nno more",
    "table_view": r"\{'coffee': '2.10', 'tea': '1.20'\}\nFalse 1",
    "time_limits": "nothing yet\nhere it is",
    "tracing": "1 trace: process receive send",
    "work_queue": "attempt 3 failed\ngiven up: bad of persistent://public/default/jobs",
}

RUN_ELSEWHERE = {"secure"}
"""By tests/integration/test_security_document.py, against a broker with TLS and tokens."""


@pytest_asyncio.fixture
async def broker() -> AsyncIterator[Broker]:
    async with Broker(config={"brokerDeduplicationEnabled": True}) as started:
        yield started


@pytest.mark.parametrize("name", SAYS)
async def test_a_program_does_what_it_says(
    broker: Broker, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    await run_example(name, broker.service_url)
    assert re.search(SAYS[name], capsys.readouterr().out)


async def run_example(name: str, service_url: str) -> None:
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    if inspect.iscoroutinefunction(module.main):
        await module.main(service_url)
    else:
        await asyncio.to_thread(module.main, service_url)


def test_each_program_is_run_and_has_its_line_in_the_guide() -> None:
    programs = {path.stem for path in EXAMPLES.glob("*.py")}
    assert programs == SAYS.keys() | RUN_ELSEWHERE
    guide = (ROOT / "docs" / "client" / "GUIDE.md").read_text()
    missing = [name for name in programs if f"examples/client/{name}.py)" not in guide]
    assert not missing


def test_code_of_the_guide_stands_in_a_program() -> None:
    guide = (ROOT / "docs" / "client" / "GUIDE.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", guide, re.DOTALL)
    programs = [path.read_text() for path in EXAMPLES.parent.rglob("*.py")]
    assert blocks
    for block in blocks:
        assert any(block in program for program in programs), block
