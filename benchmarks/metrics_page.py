"""What a scrape of `/metrics` costs a broker of many topics with a subscription each.

    python -m benchmarks.metrics_page --topics 10000

Prints seconds on the wall and of the processor from request to end, the longest turn of the loop,
and how much more memory the process had at the most. `curl` reads, in a process of its own. Exits
with 1 beyond a limit: 1 s of the processor, 20 ms of it, 20 MB. The second scrape counts, in which
what is made once is there. Topics have a message in their backlog, so that not all values are 0.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pulsar_py
from pulsar_py.common.names import TopicName
from pulsar_py.server.topics.persistent import PersistentTopic

MAX_SECONDS, MAX_TURN_SECONDS, MAX_BYTES = 1.0, 0.020, 20_000_000


class Turns:
    """The longest callback of the loop in time of the processor, while asyncio is patched."""

    def __init__(self) -> None:
        self.longest_seconds = 0.0
        run = asyncio.Handle._run  # noqa: SLF001 - there is no other way to see each turn

        def timed(handle: asyncio.Handle) -> None:
            began = time.thread_time()
            run(handle)
            self.longest_seconds = max(self.longest_seconds, time.thread_time() - began)

        asyncio.Handle._run = timed  # type: ignore[assignment, method-assign]  # noqa: SLF001


def resident_bytes(field: str) -> int:
    """`VmRSS` or `VmHWM` of this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(each.split()[1]) * 1024 for each in lines if each.startswith(field))


def forget_most_memory() -> None:
    """Let `VmHWM` begin anew."""
    Path("/proc/self/clear_refs").write_text("5")


async def scrape(url: str) -> int:
    """Read the page to its end; its bytes. A thread starts `curl`: that takes long itself."""
    command = ["curl", "-sf", "-o", "/dev/null", "-w", "%{size_download}", url]
    run = partial(subprocess.run, command, check=True, capture_output=True)
    return int((await asyncio.to_thread(run)).stdout)


async def main(topics_count: int) -> int:
    """Run it; the exit status."""
    async with pulsar_py.Broker() as broker:
        for number in range(topics_count):
            name = TopicName.parse(f"persistent://public/default/topic-{number}")
            await broker.service.namespaces.lookup(name)
            topic = await broker.service.topics.get_or_load(name, create_if_missing=True)
            assert isinstance(topic, PersistentTopic)
            await topic.create_subscription("subscription", starts_at_earliest=True)
            await topic.ledger.append_and_wait(b"x" * 100)
        url = f"{broker.web_service_url}/metrics"
        await scrape(url)
        gc.collect()
        forget_most_memory()
        turns, before = Turns(), resident_bytes("VmRSS")
        began, cpu_began = time.perf_counter(), time.process_time()
        size = await scrape(url)
        cpu_seconds = time.process_time() - cpu_began
        seconds = time.perf_counter() - began
        more = resident_bytes("VmHWM") - before
    longest_ms = turns.longest_seconds * 1e3
    print(
        f"{topics_count} topics: {size / 1e6:.1f} MB in {seconds:.2f} s, {cpu_seconds:.2f} s of "
        f"the processor, longest turn {longest_ms:.1f} ms, {more / 1e6:.1f} MB more"
    )
    is_good = cpu_seconds < MAX_SECONDS and more < MAX_BYTES
    return 0 if is_good and turns.longest_seconds < MAX_TURN_SECONDS else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--topics", type=int, default=10_000)
    sys.exit(asyncio.run(main(parser.parse_args().topics)))
