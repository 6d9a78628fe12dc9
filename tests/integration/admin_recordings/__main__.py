"""Replay groups: `python -m tests.integration.admin_recordings [--url URL URL] [GROUP ...]`.

Prints what is answered otherwise. Without `--url` a broker in memory is started.
"""

from __future__ import annotations

import argparse
import sys

import pulsar

from pulsar_py.testing.broker_thread import BrokerThread
from tests.integration.admin_recordings.not_due import read_not_due
from tests.integration.admin_recordings.player import Player, load_groups


def main() -> int:
    """Print what differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", nargs=2, metavar=("SERVICE", "WEB"))
    parser.add_argument("--unlisted", action="store_true", help="print only what is not listed")
    parser.add_argument("groups", nargs="*")
    options = parser.parse_args()
    groups = load_groups()
    chosen = options.groups or list(groups)
    if options.url:
        return play(chosen, *options.url, options=options)
    with BrokerThread() as broker:
        return play(chosen, broker.service_url, broker.web_service_url, options=options)


def play(chosen: list[str], service: str, web: str, *, options: argparse.Namespace) -> int:
    """Play the groups against one broker."""
    listed = read_not_due()
    failed: list[str] = []
    count = 0
    for name in chosen:
        steps = load_groups()[name]
        client = pulsar.Client(service, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
        hopeless = {call for group, call in listed if group == name}
        player = Player(web, client, hopeless)
        player.play(steps)
        client.close()
        count += sum("name" in step for step in steps)
        for call, found in player.failures.items():
            failed.append(f"{name}/{call}")
            if not (options.unlisted and (name, call) in listed):
                print(f"{name}/{call}: {'; '.join(found)[:500]}")
    print(f"{count - len(failed)} of {count} as recorded")
    return 0


if __name__ == "__main__":
    sys.exit(main())
