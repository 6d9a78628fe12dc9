"""Drives dispatchers from lines of text: who is sent which entries, after each line.

Consumers are numbers and entries are counted from 0. An entry that comes again is written with how
often the broker has counted that: `3r1`. Time is virtual and moves only with `wait`.
"""

from __future__ import annotations

import asyncio

from pulsar_py.server.dispatch.subscribe_request import SubscriptionType
from pulsar_py.testing.clock import VirtualClock, VirtualTimeLoop
from tests.dispatch_parts import Topic, ack, message, messages_of, redeliver, settle

KINDS = {
    "exclusive": SubscriptionType.EXCLUSIVE,
    "shared": SubscriptionType.SHARED,
    "failover": SubscriptionType.FAILOVER,
    "key-shared": SubscriptionType.KEY_SHARED,
}


def numbers(words):
    """`0 3..5` is 0, 3, 4, 5."""
    found = []
    for word in words:
        first, dots, last = word.partition("..")
        found += range(int(first), int(last) + 1) if dots else [int(first)]
    return found


class DispatchPlayer:
    def __init__(self):
        self.runner = asyncio.Runner(loop_factory=VirtualTimeLoop)
        self.topic = None
        self.consumers = {}
        self.shown = {}

    def execute(self, line):
        return self.runner.run(self._execute(line))

    def close(self):
        if self.topic is not None:
            self.runner.run(self.topic.close())
        self.runner.close()

    async def _execute(self, line):
        command, *words = line.split()
        answer = await getattr(self, f"do_{command.replace('-', '_')}")(*words)
        await settle()
        return "   ".join(filter(None, [answer, *self.news()]))

    def news(self):
        """What each consumer was sent since the last line."""
        for number, consumer in self.consumers.items():
            messages = messages_of(consumer)
            new = messages[self.shown.get(number, 0) :]
            self.shown[number] = len(messages)
            if new:
                counts = [
                    f"{each.entry_id}r{each.redelivery_count}"
                    if each.redelivery_count
                    else str(each.entry_id)
                    for each in new
                ]
                yield f"{number}: {' '.join(counts)}"

    async def do_topic(self):
        if self.topic is not None:
            await self.topic.close()
        self.consumers, self.shown = {}, {}
        self.topic = await Topic(VirtualClock()).open()

    async def do_publish(self, count="1", *options):
        """`publish 3`, `publish 2 key=a`, `publish 1 batch=5`."""
        fields = dict(option.split("=") for option in options)
        entry = message(
            batch=int(fields["batch"]) if "batch" in fields else None,
            **({"partition_key": fields["key"]} if "key" in fields else {}),
        )
        await self.topic.publish(*[entry] * int(count))

    async def do_consume(self, number, kind, *options):
        """`consume 1 shared permits=5 priority=1`."""
        fields = dict(option.split("=") for option in options)
        request = {"priority_level": int(fields["priority"])} if "priority" in fields else {}
        self.consumers[number] = await self.topic.consume(
            int(number), KINDS[kind], permits=int(fields.get("permits", 0)), **request
        )

    async def do_flow(self, number, permits):
        self.consumers[number].flow(int(permits))

    async def do_ack(self, number, *words):
        ack(self.consumers[number], *numbers(words))

    async def do_ack_up_to(self, number, entry):
        ack(self.consumers[number], int(entry), cumulative=True)

    async def do_redeliver(self, number, *words):
        """Without entries it is all that the consumer holds."""
        redeliver(self.consumers[number], *numbers(words))

    async def do_close(self, number):
        self.consumers.pop(number).close()
        self.shown.pop(number, None)

    async def do_wait(self, seconds):
        await asyncio.sleep(float(seconds))

    async def do_owed(self):
        """What each consumer has permits for, and has not acknowledged."""
        return "   ".join(
            f"{number}: permits {each.permits.available} unacked {each.permits.unacked_messages}"
            for number, each in self.consumers.items()
        )
