"""Publish a file of 100,000 lines, kill the broker with `kill -9`, and read the file back.

    .venv/bin/python examples/file_through_a_killed_broker.py

It makes an access log, starts `pulsar-py standalone`, publishes each line as a message with the
official `pulsar-client` package, kills the broker as soon as the last line is confirmed, starts it
again, and lets a second process consume everything and compare it with the file.
"""

from __future__ import annotations

import argparse
import random
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pulsar

LINES = 100_000
TOPIC = "access-log"
SUBSCRIPTION = "reader"


def write_log(path: Path) -> None:
    """An access log with a fixed seed, so that every run has the same."""
    chance = random.Random(7)
    with path.open("w") as file:
        for index in range(LINES):
            address = ".".join(str(chance.randrange(256)) for _ in range(4))
            second = index // 50
            file.write(
                f"{address} - - [21/Nov/2026:{second // 3600:02}:{second // 60 % 60:02}:"
                f'{second % 60:02} +0000] "GET /page/{chance.randrange(10_000)} HTTP/1.1" '
                f"{chance.choice([200, 200, 200, 304, 404])} {chance.randrange(100_000)}\n"
            )


def quiet_client(url: str) -> pulsar.Client:
    """An official client that keeps its log to errors."""
    return pulsar.Client(url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))


def publish(url: str, path: Path) -> None:
    """Send every line; returns when the broker has confirmed all of them."""
    client = quiet_client(url)
    # The subscription has to be there first: it holds the messages until they are consumed.
    client.subscribe(TOPIC, SUBSCRIPTION).close()
    producer = client.create_producer(TOPIC, batching_enabled=True, block_if_queue_full=True)
    failed = []

    def on_sent(result: pulsar.Result, _: pulsar.MessageId) -> None:
        if result != pulsar.Result.Ok:
            failed.append(result)

    with path.open("rb") as file:
        for line in file:
            producer.send_async(line, on_sent)
    producer.flush()
    client.close()
    if failed:
        raise SystemExit(f"{len(failed)} lines were not confirmed: {failed[0]}")


def consume(url: str, path: Path) -> None:
    """Receive as many messages as the file has lines, and compare them with it, in order."""
    client = quiet_client(url)
    consumer = client.subscribe(TOPIC, SUBSCRIPTION)
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            message = consumer.receive(30_000)
            if message.data() != line:
                raise SystemExit(f"line {number}: sent {line!r}, received {message.data()!r}")
            consumer.acknowledge(message)
    client.close()
    print(f"{number} lines came back, complete and in order")


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def start_broker(directory: Path, port: int) -> subprocess.Popen[str]:
    """Start the broker; returns when it says that it is ready."""
    program = Path(sys.executable).with_name("pulsar-py")
    broker = subprocess.Popen(
        [
            str(program), "standalone", "--data-dir", str(directory / "data"),
            "--host", "127.0.0.1", "--port", str(port), "--web-port", str(free_port()),
        ],
        stdout=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    assert broker.stdout is not None
    print(broker.stdout.readline().strip(), flush=True)
    return broker


def run(directory: Path) -> int:
    """The whole story; the exit code."""
    path = directory / "access.log"
    write_log(path)
    port = free_port()
    url = f"pulsar://127.0.0.1:{port}"
    broker = start_broker(directory, port)
    try:
        publish(url, path)
        print(f"{LINES} lines are confirmed; now kill -9", flush=True)
        broker.send_signal(signal.SIGKILL)
        broker.wait()
        broker = start_broker(directory, port)
        reading = [sys.executable, __file__, "--consume", url, str(path)]
        return subprocess.run(reading, check=False).returncode
    finally:
        broker.terminate()
        broker.wait()


def main() -> None:
    """Run the story, or with `--consume` its second process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--directory", type=Path, help="for the log and the broker's data")
    parser.add_argument("--consume", nargs=2, metavar=("URL", "FILE"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.consume:
        consume(arguments.consume[0], Path(arguments.consume[1]))
        return
    with tempfile.TemporaryDirectory() as name:
        sys.exit(run(arguments.directory or Path(name)))


if __name__ == "__main__":
    main()
