"""`pulsar-py top` as a person has it: in a terminal, beside load, over a restart of the broker."""

from __future__ import annotations

import os
import re
import select
import socket
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from socketserver import BaseRequestHandler, ThreadingTCPServer
from typing import Self
from urllib.parse import urlsplit

import pulsar

from pulsar_py.testing.broker_thread import BrokerThread
from tests.terminal import Terminal

TOPICS = 12
SHOWN = 6
"""Rows of a terminal of eight lines."""


class Load:
    """Publishes to topics all the time, to the first one most."""

    def __init__(self, broker: BrokerThread) -> None:
        self._is_over = threading.Event()
        self._client = pulsar.Client(
            broker.service_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
        )
        self._producers = [
            self._client.create_producer(f"t{number:02}", send_timeout_millis=0)
            for number in range(TOPICS)
        ]
        self._client.subscribe("t11", "s").close()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        while not self._is_over.wait(0.01):
            for number, producer in enumerate(self._producers):
                for _ in range(TOPICS - number):
                    producer.send_async(b"x", lambda *_: None)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()
        self._client.close()


class Way(ThreadingTCPServer):
    """The way to a broker's HTTP port, which can be closed."""

    daemon_threads = True
    is_closed = False

    def __init__(self, url: str) -> None:
        address = urlsplit(url)
        self.target = (address.hostname, address.port)
        super().__init__(("127.0.0.1", 0), Passing)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()


class Passing(BaseRequestHandler):
    """One connection on its way: one request and its answer at a time."""

    server: Way

    def handle(self) -> None:
        if self.server.is_closed:
            return
        with socket.create_connection(self.server.target) as broker:
            pair = [self.request, broker]
            while not self.server.is_closed:
                for side in select.select(pair, [], [], 0.05)[0]:
                    data = side.recv(65_536)
                    if not data:
                        return
                    pair[side is self.request].sendall(data)


def names(picture: str) -> list[str]:
    return re.findall(r"default/(t\d\d)", picture)


def rows(picture: str) -> list[str]:
    return [line.rstrip() for line in picture.split("\r\n") if names(line)]


def descends(picture: str) -> bool:
    """Whether the rows come by rate: which topic has which is for the machine to say."""
    found = re.findall(r"default/t\d\d +([\d.]+)([kM]?)", picture)
    rates = [float(number) * {"": 1, "k": 1e3, "M": 1e6}[unit] for number, unit in found]
    return rates[0] > 0 and rates == sorted(rates, reverse=True)


def until_drawn(terminal: Terminal, is_right: Callable[[str], bool]) -> None:
    """Wait for a picture of a kind: some are still those of before, or of a busy moment."""
    for _ in range(200):
        if is_right(terminal.until("msg/s", "msg/s in").rpartition("msg/s in")[0]):
            return
    raise AssertionError("no picture was as expected")


def test_it_is_drawn_anew_sorted_and_within_the_terminal(tmp_path: Path) -> None:
    every = {f"t{number:02}" for number in range(TOPICS)}
    with (
        BrokerThread(data_dir=tmp_path / "data") as broker,
        Load(broker),
        Way(broker.web_service_url) as way,
    ):
        command = [sys.executable, "-m", "pulsar_py", "top", "--interval", "0.5"]
        command += ["--admin-url", way.url]
        env = {**os.environ, "TERM": "xterm", "HOME": str(tmp_path)}
        with Terminal(command, env, size=(8, 120)) as terminal:
            until_drawn(
                terminal, lambda picture: len(names(picture)) == SHOWN and descends(picture)
            )
            terminal.resize(30, 120)
            until_drawn(
                terminal, lambda picture: set(names(picture)) == every and descends(picture)
            )
            terminal.resize(30, 36)
            until_drawn(
                terminal,
                lambda picture: (
                    len(rows(picture)) == TOPICS
                    and all(len(row) <= 36 and "…" in row for row in rows(picture))
                ),
            )
            terminal.resize(30, 120)
            way.is_closed = True
            terminal.until(
                "default/t", f"127.0.0.1:{way.server_address[1]}"
            )  # what is known, and why
            broker.restart()
            way.is_closed = False
            until_drawn(
                terminal,
                lambda picture: set(names(picture)) == every and ":" not in tail(picture),
            )
            terminal.type("\x03")
            code, last = terminal.end()
        assert code == 130
        assert b"\x1b[?25h" in last, "the cursor is there again"
        assert b"\x1b[?1049l" in last, "and what stood on the screen"
        assert b"Traceback" not in last
        command += ["--sort", "backlog"]
        with Terminal(command, env, size=(8, 120)) as terminal:
            until_drawn(terminal, lambda picture: names(picture)[:1] == ["t11"])


def tail(picture: str) -> str:
    """What stands below the rows."""
    return picture.rpartition("default/")[2].partition("\r\n")[2]
