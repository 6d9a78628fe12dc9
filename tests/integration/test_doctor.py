"""Each cause that `doctor SUBSCRIPTION` tells is set up for real, and the command that it names cures it.

A cause without a command is one that only the application, or time, can end: these are set up,
too, and told without a command.
"""

from __future__ import annotations

import asyncio
import json
import shlex
import subprocess
import sys
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from pulsar_py.cli.commands import main
from pulsar_py.cli.watching.remedies import REMEDIES
from pulsar_py.client import (
    AnyConsumer,
    Client,
    ConsumerKeySharedPolicy,
    ConsumerType,
    KeySharedMode,
)
from pulsar_py.standalone import Broker
from tests.wire_client import CommandSubscribe, WireClient

TOPIC = "persistent://public/default/orders of 'today'"
"""A name that a shell would take apart."""
NAME = "billing & co"


class Patient:
    """A broker with one subscription that does not move."""

    def __init__(self, broker: Broker, client: Client) -> None:
        self.broker, self.client = broker, client
        self.url = broker.web_service_url
        self._one_command = asyncio.Lock()  # the runner has the process's standard output

    async def run(self, *words: str) -> Result:
        """A command line of ours."""
        return await self._run(*words, "--admin-url", self.url)

    async def _run(self, *words: str) -> Result:
        async with self._one_command:
            return await asyncio.to_thread(CliRunner().invoke, main, words, catch_exceptions=False)

    async def admin(self, *words: str) -> None:
        """A word of `pulsar-py admin` that has to work."""
        done = await self._run("admin", "--admin-url", self.url, *words)
        assert done.exit_code == 0, done.output

    async def reasons(self) -> dict[str, dict[str, Any]]:
        """What the doctor says, by code."""
        done = await self.run("doctor", NAME, "--topic", TOPIC, "-o", "json")
        assert done.stdout, done.output
        found = json.loads(done.stdout)
        assert done.exit_code == (1 if found["reasons"] else 0)
        return {each["code"]: each for each in found["reasons"]}

    async def cure(self, command: str) -> None:
        """What a shell would run."""
        program, *words = shlex.split(command)
        assert program == "pulsar-py"
        if words[0] == "admin":
            await self.admin(*words[1:])
        elif words[:2] == ["client", "consume"]:
            await self.consume(words)
        elif words[0] == "client":
            done = await self._run("client", "--url", self.broker.service_url, *words[1:])
            assert done.exit_code == 0, done.output
        else:
            assert (await self.run(*words)).exit_code == 0

    async def consume(self, words: list[str]) -> None:
        """`client consume -n 0` goes on until it is interrupted."""
        own = [words[0], "--url", self.broker.service_url, *words[1:]]
        process = subprocess.Popen(  # noqa: ASYNC220 - starting takes no time
            [Path(sys.executable).with_name("pulsar-py"), *own], stdout=subprocess.PIPE
        )
        try:
            async with asyncio.timeout(60):
                while "NO_CONSUMERS" in await self.reasons():
                    await asyncio.sleep(0.1)
                while "NOTHING_THERE" not in await self.reasons():
                    await asyncio.sleep(0.1)
        finally:
            # Not SIGINT: it is ignored where the tests run behind a shell's `&`.
            process.terminate()
            await asyncio.to_thread(process.communicate)

    async def send(self, count: int, **options: Any) -> None:
        async with await self.client.create_producer(TOPIC, batching_enabled=False) as producer:
            await asyncio.gather(*(producer.send(b"x", **options) for _ in range(count)))

    async def subscribe(
        self, kind: ConsumerType = ConsumerType.Shared, **options: Any
    ) -> AnyConsumer[Any]:
        options.setdefault("ack_grouping_time_ms", 0)
        return await self.client.subscribe(TOPIC, NAME, consumer_type=kind, **options)


async def taken(consumer: AnyConsumer[Any], least: int, *, acknowledge: bool) -> list[Any]:
    """Messages that come, at least so many."""
    found = []
    async with asyncio.timeout(30):
        while len(found) < least:
            message = await consumer.receive()
            found.append(message)
            if acknowledge:
                await consumer.acknowledge(message)
    return found


SetUp = Callable[[Patient], Awaitable[Callable[[], Awaitable[object]]]]
"""Brings a cause about; returns what succeeds only when it is gone."""


async def paused(patient: Patient) -> Callable[[], Awaitable[object]]:
    consumer = await patient.subscribe()
    assert (await patient.run("subscription", "pause", TOPIC, NAME)).exit_code == 0
    await patient.send(1)
    return lambda: taken(consumer, 1, acknowledge=True)


async def no_consumers(patient: Patient) -> Callable[[], Awaitable[object]]:
    await (await patient.subscribe()).close()
    await patient.send(2)

    async def nothing() -> None:
        pass

    return nothing


def rate_of(word: str, *target: str) -> SetUp:
    async def limited(patient: Patient) -> Callable[[], Awaitable[object]]:
        await patient.send(1)
        if word.startswith("brokers"):
            await patient.admin(*word.split(), *target)
        else:
            await patient.admin("topicPolicies", word, "-md", "1", "-dt", "600", TOPIC)
        consumer = await patient.subscribe()
        await patient.send(50)
        await taken(consumer, 1, acknowledge=True)
        return lambda: taken(consumer, 40, acknowledge=True)

    return limited


async def unacknowledged_consumer(patient: Patient) -> Callable[[], Awaitable[object]]:
    consumer = await patient.subscribe()
    await patient.send(400)
    await taken(consumer, 20, acknowledge=False)
    return lambda: taken(consumer, 20, acknowledge=False)  # as many as stopped it


async def slow_socket(patient: Patient) -> Callable[[], Awaitable[object]]:
    port = int(patient.broker.service_url.rpartition(":")[2])
    slow = await WireClient.connect("127.0.0.1", port)
    await slow.lookup(TOPIC)
    await slow.subscribe(TOPIC, NAME, CommandSubscribe.Shared)
    slow.reader._transport.pause_reading()  # type: ignore[attr-defined]
    slow.flow(1000)
    async with await patient.client.create_producer(TOPIC, batching_enabled=False) as producer:
        await asyncio.gather(*(producer.send(b"x" * 1_000_000) for _ in range(60)))

    async def others_get_them() -> None:
        slow.writer.transport.abort()
        async with await patient.subscribe() as consumer:
            await taken(consumer, 60, acknowledge=True)

    return others_get_them


async def hole(patient: Patient) -> Callable[[], Awaitable[object]]:
    consumer = await patient.subscribe()
    await patient.send(10)
    messages = await taken(consumer, 10, acknowledge=False)
    for message in messages[1:]:
        await consumer.acknowledge(message)
    return lambda: taken(consumer, 1, acknowledge=True)


async def unacknowledged(patient: Patient) -> Callable[[], Awaitable[object]]:
    consumer = await patient.subscribe()
    await patient.send(5)
    await taken(consumer, 5, acknowledge=False)
    return lambda: taken(consumer, 5, acknowledge=True)


async def nothing_there(patient: Patient) -> Callable[[], Awaitable[object]]:
    consumer = await patient.subscribe()
    return lambda: taken(consumer, 1, acknowledge=True)


async def delayed(patient: Patient) -> Callable[[], Awaitable[object]]:
    consumer = await patient.subscribe()
    await patient.send(3, deliver_after=timedelta(hours=1))
    async with asyncio.timeout(30):
        while "DELAYED" not in await patient.reasons():
            await asyncio.sleep(0.05)

    async def the_next_one_comes() -> None:
        await patient.send(1)
        await taken(consumer, 1, acknowledge=True)

    return the_next_one_comes


async def keyed(patient: Patient, numbers: range) -> None:
    async with await patient.client.create_producer(TOPIC, batching_enabled=False) as producer:
        for number in numbers:
            await producer.send(b"x", partition_key=str(number % 20))


async def blocked_hash(patient: Patient) -> Callable[[], Awaitable[object]]:
    first = await patient.subscribe(ConsumerType.KeyShared)
    await keyed(patient, range(40))
    await taken(first, 40, acknowledge=False)
    second = await patient.subscribe(ConsumerType.KeyShared)
    await keyed(patient, range(40))

    async def both_get_all() -> None:
        async def all_of(consumer: AnyConsumer[Any]) -> None:
            while "NOTHING_THERE" not in await patient.reasons():
                try:
                    message = await consumer.receive(200)
                except TimeoutError:
                    continue
                await consumer.acknowledge(message)

        async with asyncio.timeout(60):
            await asyncio.gather(all_of(first), all_of(second))

    return both_get_all


async def look_ahead(patient: Patient) -> Callable[[], Awaitable[object]]:
    first = await patient.subscribe(ConsumerType.KeyShared)
    await keyed(patient, range(40))
    await taken(first, 40, acknowledge=False)
    second = await patient.subscribe(ConsumerType.KeyShared)
    await keyed(patient, range(60))
    await patient.send(20, partition_key="new of the second")
    await patient.send(20, partition_key="another")
    await patient.send(20, partition_key="one more")

    async def what_nothing_holds_back_comes() -> None:
        async def new_one(consumer: AnyConsumer[Any]) -> None:
            while (
                not (await consumer.receive()).partition_key().endswith(("second", "other", "more"))
            ):
                pass

        async with asyncio.timeout(30):
            tasks = [asyncio.ensure_future(new_one(each)) for each in (first, second)]
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                task.cancel()

    return what_nothing_holds_back_comes


async def hash_without_consumer(patient: Patient) -> Callable[[], Awaitable[object]]:
    policy = ConsumerKeySharedPolicy(KeySharedMode.Sticky, sticky_ranges=[(0, 30_000)])
    consumer = await patient.subscribe(ConsumerType.KeyShared, key_shared_policy=policy)
    await keyed(patient, range(40))
    await taken(consumer, 1, acknowledge=True)

    async def nothing() -> None:
        pass

    return nothing


async def no_permits(patient: Patient) -> Callable[[], Awaitable[object]]:
    consumer = await patient.subscribe(receiver_queue_size=1)
    await patient.send(20)
    return lambda: taken(consumer, 20, acknowledge=True)


async def switching(patient: Patient) -> Callable[[], Awaitable[object]]:
    first = await patient.subscribe(ConsumerType.Failover, consumer_name="a")
    second = await patient.subscribe(ConsumerType.Failover, consumer_name="b")
    await first.close()
    await patient.send(1)
    return lambda: taken(second, 1, acknowledge=True)


CASES: dict[str, tuple[str, SetUp, dict[str, Any]]] = {
    "paused": ("PAUSED", paused, {}),
    "no consumers": ("NO_CONSUMERS", no_consumers, {}),
    "rate of the subscription": ("RATE_LIMIT", rate_of("set-subscription-dispatch-rate"), {}),
    "rate of the topic": ("RATE_LIMIT", rate_of("set-dispatch-rate"), {}),
    "rate of the broker": (
        "RATE_LIMIT",
        rate_of("brokers update-dynamic-config", "-c", "dispatchThrottlingRateInMsg", "-v", "1"),
        {},
    ),
    "unacknowledged, consumer": (
        "CONSUMER_UNACKED_LIMIT",
        unacknowledged_consumer,
        {"maxUnackedMessagesPerConsumer": 20},
    ),
    "unacknowledged, subscription": (
        "SUBSCRIPTION_UNACKED_LIMIT",
        unacknowledged_consumer,
        {"maxUnackedMessagesPerSubscription": 20},
    ),
    "unacknowledged, broker": (
        "BROKER_UNACKED_LIMIT",
        unacknowledged_consumer,
        {"maxUnackedMessagesPerBroker": 20},
    ),
    "slow socket": ("SLOW_SOCKET", slow_socket, {}),
    "hole": ("HOLE", hole, {}),
    "unacknowledged": ("UNACKNOWLEDGED", unacknowledged, {}),
    "nothing there": ("NOTHING_THERE", nothing_there, {}),
    "delayed": ("DELAYED", delayed, {}),
    "blocked hash": ("BLOCKED_HASH", blocked_hash, {}),
    "look-ahead": (
        "LOOK_AHEAD_LIMIT",
        look_ahead,
        {"keySharedLookAheadMsgInReplayThresholdPerSubscription": 5},
    ),
}
WITHOUT_COMMAND: dict[str, tuple[SetUp, dict[str, Any]]] = {
    "HASH_WITHOUT_CONSUMER": (hash_without_consumer, {}),
    "NO_PERMITS": (no_permits, {}),
    "SWITCHING_CONSUMER": (switching, {"activeConsumerFailoverDelayTimeMillis": 2000}),
}
NOT_SET_UP = {
    "NOT_OPEN": "holds while a reset or a deletion runs, milliseconds",
    "READ_FAILED": "needs a disk that fails; tests/unit/server/subscriptions has it",
    "SLOW_READ": "needs a disk that hangs; tests/unit/server/subscriptions has it",
    "PUT_OFF": "needs a filter; tests/unit/server/subscriptions has it",
    "HELD_BACK": "needs transactions, which are not there",
}


def test_every_cause_is_here() -> None:
    with_command = {code for code, _, _ in CASES.values()}
    assert with_command | WITHOUT_COMMAND.keys() | NOT_SET_UP.keys() == REMEDIES.keys()


async def awaited(patient: Patient, code: str) -> dict[str, Any]:
    async with asyncio.timeout(120):
        while code not in (found := await patient.reasons()):
            await asyncio.sleep(0.05)
    return found[code]


@pytest.mark.parametrize("case", CASES)
async def test_the_command_that_is_named_cures_it(case: str) -> None:
    code, set_up, config = CASES[case]
    async with Broker(config=config) as broker, Client(broker.service_url) as client:
        patient = Patient(broker, client)
        is_cured = await set_up(patient)
        reason = await awaited(patient, code)
        await patient.cure(reason["command"])
        await is_cured()


@pytest.mark.parametrize("code", WITHOUT_COMMAND)
async def test_what_only_the_application_or_time_ends_has_no_command(code: str) -> None:
    set_up, config = WITHOUT_COMMAND[code]
    async with Broker(config=config) as broker, Client(broker.service_url) as client:
        patient = Patient(broker, client)
        is_cured = await set_up(patient)
        reason = await awaited(patient, code)
        assert "command" not in reason
        assert reason["message"]
        await is_cured()
