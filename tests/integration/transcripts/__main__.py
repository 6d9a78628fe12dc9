"""Replay scenarios against a running broker: `python -m tests.integration.transcripts --help`."""

from __future__ import annotations

import argparse
import asyncio
import sys

from tests.integration.transcripts.player import Target, play_all, settle
from tests.integration.transcripts.recording import load_recording


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return host, int(port)


def main() -> int:
    """Print what differs; the status is 1 if anything does."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--broker", type=_address, default=("127.0.0.1", 6650))
    parser.add_argument("--web", type=_address, default=("127.0.0.1", 8080))
    parser.add_argument("--settings", default="default", help="play the scenarios of this set")
    parser.add_argument("--only", action="append", help="play these scenarios only")
    parser.add_argument("--group", action="append", help="play these groups only")
    parser.add_argument("--at-once", type=int, default=32)
    parser.add_argument("--print-settings", action="store_true", help="the set's settings")
    options = parser.parse_args()
    recording = load_recording()
    if options.print_settings:
        print("\n".join(recording.settings[options.settings]))
        return 0
    scenarios = [
        scenario
        for scenario in recording.scenarios.values()
        if (
            scenario.name in options.only if options.only else scenario.settings == options.settings
        )
        and (not options.group or scenario.group in options.group)
    ]
    target = Target(*options.broker, *options.web)

    async def run() -> int:
        await settle(target)
        outcomes = await play_all(recording, scenarios, target, at_once=options.at_once)
        failed = [outcome for outcome in outcomes.values() if not outcome.has_passed]
        for outcome in failed:
            print(f"{outcome.name}:")
            for difference in outcome.differences:
                print(f"    {difference}")
        print(f"{len(outcomes) - len(failed)} of {len(outcomes)} as recorded")
        return 1 if failed else 0

    return asyncio.run(run())


if __name__ == "__main__":
    sys.exit(main())
