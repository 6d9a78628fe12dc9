"""A client and `os.fork`: in the child everything says why it is of no use; the parent goes on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.package_source import ROOT

PROGRAM = """
import asyncio, os, sys, warnings
import pulsar_py

warnings.simplefilter("error")


async def main():
    async with pulsar_py.Broker() as broker, pulsar_py.Client(broker.service_url) as client:
        producer = await client.create_producer("t")
        consumer = await client.subscribe("t", "s")
        await producer.send(b"before")
        child = os.fork()
        if child == 0:
            os._exit(in_child(client, producer, consumer, broker.service_url))
        _, status = await asyncio.to_thread(os.waitpid, child, 0)
        assert os.waitstatus_to_exitcode(status) == 0, status
        await producer.send(b"after")
        got = []
        while len(got) < 2:
            message = await consumer.receive(timeout_millis=30_000)
            got.append(message.data())
            await consumer.acknowledge(message)
        assert got == [b"before", b"after"], got
        assert producer.is_connected() and consumer.is_connected()
    print("the parent goes on")


def in_child(client, producer, consumer, url):
    try:
        for act in (
            lambda: producer.send_nowait(b"from the child"),
            lambda: step(producer.send(b"from the child")),
            lambda: step(client.create_producer("u")),
            lambda: step(client.subscribe("t", "u")),
            lambda: step(client.get_topic_partitions("t")),
            lambda: step(consumer.get_last_message_id()),
        ):
            try:
                act()
            except pulsar_py.ForkedProcessError as error:
                assert "make a new client" in str(error), error
            else:
                return 1
        return 0
    except BaseException as error:
        sys.stderr.write(f"in the child: {error!r}\\n")
        return 2


def step(coroutine):
    try:
        coroutine.send(None)
    finally:
        coroutine.close()


asyncio.run(main())
"""


def test_a_child_gets_clear_errors_and_the_parent_keeps_its_connections(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, str(program)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "the parent goes on" in done.stdout
