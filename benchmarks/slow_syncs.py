"""`pulsar-py` on a disk whose syncs take longer: `slow_syncs.py MILLISECONDS ARGUMENTS`.

Each sync of a file waits so much longer in its thread, beside what the real disk takes. The product
itself has no such delay.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def slowed(call: Callable[P, T], seconds: float) -> Callable[P, T]:
    """The call, which takes `seconds` longer."""

    def call_slowly(*args: P.args, **kwargs: P.kwargs) -> T:
        result = call(*args, **kwargs)
        time.sleep(seconds)
        return result

    return call_slowly


def slow_down(seconds: float) -> None:
    """Make all syncs of files take `seconds` longer, those of `pwritev` with `RWF_DSYNC`, too."""
    write = os.pwritev
    write_slowly = slowed(write, seconds)

    def write_or_sync(*args: object) -> int:
        is_sync = len(args) > 3 and args[3]  # descriptor, buffers, offset, flags
        return (write_slowly if is_sync else write)(*args)  # type: ignore[arg-type]

    os.pwritev = write_or_sync
    os.fdatasync = slowed(os.fdatasync, seconds)
    os.fsync = slowed(os.fsync, seconds)


def main() -> None:
    """Run the command line behind the first argument."""
    from pulsar_py.cli.main import main as run_command  # noqa: PLC0415 - as the product's script does

    slow_down(float(sys.argv.pop(1)) / 1000)
    run_command()


if __name__ == "__main__":
    main()
