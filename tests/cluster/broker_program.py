"""A broker in a process of its own, to be stopped and woken: `broker_program.py zk:HOST:PORT`.

It says its service URL when it serves, and ends with its standard input.
"""

from __future__ import annotations

import asyncio
import sys

from tests.cluster.cluster_broker import Metadata, cluster_broker


async def main(url: str) -> None:
    async with cluster_broker(Metadata(url)) as broker:
        print(broker.service_url, flush=True)
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
