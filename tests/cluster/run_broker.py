"""A broker of ours on ZooKeeper and BookKeeper: `python -m tests.cluster.run_broker`.

It prints a line with `ready` when both ports answer, and stops cleanly at SIGTERM.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import signal

import uvloop

from pulsar_py.server.config import BrokerConfig
from pulsar_py.standalone import Broker
from tests.cluster.store_factories import OnBookKeeper, OnZooKeeper


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--zookeeper", required=True)
    parser.add_argument("--session-millis", type=int, required=True)
    parser.add_argument("--quorums", required=True, help="ensemble,write,ack")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--web-port", type=int, required=True)
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    return parser.parse_args()


async def serve(chosen: argparse.Namespace) -> None:
    ensemble, write, ack = map(int, chosen.quorums.split(","))
    settings = dict(line.split("=", 1) for line in chosen.set)
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    async with Broker(
        config=BrokerConfig.from_texts(settings),
        port=chosen.port,
        web_port=chosen.web_port,
        metadata_store_factory=OnZooKeeper(chosen.zookeeper, chosen.session_millis),
        ledger_store_factory=OnBookKeeper((ensemble, write, ack)),
    ):
        print("ready", flush=True)
        await stopped.wait()


if __name__ == "__main__":
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s %(message)s %(args)s")
    logging.getLogger().setLevel(logging.INFO)
    uvloop.run(serve(options()))
