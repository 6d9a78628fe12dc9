"""How long `pulsar-py --help` and one call of `pulsar-py admin` take, from start to end.

Processor time of the process, the least of several runs: what others do on the machine adds to the
clock's time, not to it. The call is answered by a server in this process, at once. Modules are
compiled once, as where the package was installed, into a directory of the benchmark's own. Ends
with 1 if a bound is exceeded.

    python -m benchmarks.admin_command
"""

from __future__ import annotations

import http.server
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from http import HTTPStatus

RUNS = 7


@dataclass(frozen=True, slots=True)
class Bound:
    """One command line, and how many milliseconds it may take."""

    name: str
    arguments: tuple[str, ...]
    limit_millis: float


BOUNDS = (
    Bound("pulsar-py --help", ("--help",), 150),
    Bound("pulsar-py admin --help", ("admin", "--help"), 150),
    Bound("pulsar-py admin topics --help", ("admin", "topics", "--help"), 150),
    Bound("pulsar-py admin topics list", ("admin", "topics", "list", "public/default"), 250),
    Bound("pulsar-py admin topics stats", ("admin", "topics", "stats", "my-topic"), 250),
)


class _Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = json.dumps([] if "stats" not in self.path else {"msgRateIn": 0.0}).encode()
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing of requests."""


def environment_of(admin_url: str, compiled: str) -> dict[str, str]:
    """Variables for the command; `compiled` is the directory for what Python compiles."""
    found = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {
        **found,
        "PULSAR_PY_ADMIN_URL": admin_url,
        "PULSAR_PY_CONTEXTS": "/none",
        "PYTHONPYCACHEPREFIX": compiled,
    }


def measure(arguments: tuple[str, ...], environment: dict[str, str]) -> tuple[float, float]:
    """Milliseconds of the processor and of the clock, each the least of the runs."""
    processor, clock = [], []
    for _ in range(RUNS):
        before, start = _children_seconds(), time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "pulsar_py", *arguments],
            env=environment,
            stdout=subprocess.DEVNULL,
            check=True,
        )
        clock.append(time.perf_counter() - start)
        processor.append(_children_seconds() - before)
    return min(processor) * 1000, min(clock) * 1000


def _children_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def main() -> int:
    """Print each figure; returns 1 if one is beyond its bound."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    admin_url = f"http://127.0.0.1:{server.server_port}"
    is_within = True
    with tempfile.TemporaryDirectory() as compiled:
        environment = environment_of(admin_url, compiled)
        for bound in BOUNDS:
            processor, clock = measure(bound.arguments, environment)
            is_within &= processor <= bound.limit_millis
            print(
                f"{bound.name:32} {processor:6.0f} ms of the processor "
                f"({clock:.0f} ms by the clock), at most {bound.limit_millis:.0f}"
            )
    server.shutdown()
    return 0 if is_within else 1


if __name__ == "__main__":
    sys.exit(main())
