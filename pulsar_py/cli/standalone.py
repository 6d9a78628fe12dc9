"""The work of `pulsar-py standalone`: runs a broker in this process until a signal ends it (edge).

When all ports answer, one line on standard output says so, with their addresses: as text, or as
the JSON object of `ready_line`. Logs go to
standard error. The first SIGTERM or SIGINT stops the broker cleanly, with all data flushed; the
same signal again kills the process. Exit codes: 0 after a clean stop, 1 if the broker could not
start, with the reason in one line.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Final, Self

import uvloop
from msgspec import Struct
from msgspec.structs import asdict, astuple

from pulsar_py.cli.answering.json_lines import json_line
from pulsar_py.cli.journal_log import log_handler
from pulsar_py.cli.reach import Reach
from pulsar_py.cli.standalone_options import StandaloneOptions
from pulsar_py.cli.supervision import supervised
from pulsar_py.common.errors import ConfigurationError, PulsarError
from pulsar_py.common.log_format import JsonFormatter, TextFormatter
from pulsar_py.common.loops.clock import SystemClock
from pulsar_py.common.loops.idle_heap import IdleHeap, keep_freed_memory, trim_heap
from pulsar_py.server.config import BrokerConfig, is_secret
from pulsar_py.server.properties_text import PropertyLine, property_lines
from pulsar_py.server.security.key_source import warn_if_others_can_read
from pulsar_py.standalone import Broker

_HEAP_SECONDS: Final = 1.0
"""After the start, which so does without `ctypes`."""
COLLECTOR_THRESHOLDS = (2500, 1, 400)
"""Thresholds of Python's cyclic garbage collector: how many new objects start a collection of the
youngest generation; more than how many of these start one of the next, which visits all objects
since the last of its kind; and more than how many of those a full one. With 5000 and 4 one of the
second kind stopped the loop for 3 ms, on a busy machine for 6 to 12; no object is visited more."""

SWITCH_INTERVAL_SECONDS = 0.0005
"""How long a thread that has read or synced waits at most for the interpreter while the loop is
busy. Python's default is 5 ms, in which the loop sends three megabytes: a consumer that reads a
backlog would wait that long for each further read."""

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def run(options: StandaloneOptions) -> int:
    """Run a broker until it is stopped; returns the exit code."""
    set_up_logging(log_format=options.log_format, level=options.log_level)
    return run_to_the_end(lambda: serve(options))


def run_to_the_end(serve: Callable[[], Coroutine[None, None, None]]) -> int:
    """Run what serves in a loop of its own; returns the exit code, 1 with one line on an error."""
    spare_the_loop()
    hurry_threads()
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_watched(serve))
            # The process ends, so nothing has to be collected: at its exit the interpreter would
            # look for cycles, for 0.15 ms a topic.
            gc.freeze()
    except (PulsarError, OSError) as error:
        sys.stderr.write(f"Error: {one_line(error)}\n")
        return 1
    return 0


async def _watched(serve: Callable[[], Coroutine[None, None, None]]) -> None:
    clock = SystemClock()
    with IdleHeap(clock, time.process_time, trim_heap):
        later = clock.call_later(_HEAP_SECONDS, keep_freed_memory)
        try:
            await serve()
        finally:
            later.cancel()


def one_line(error: Exception) -> str:
    """The error's text with its path; of a system error without its number."""
    if isinstance(error, OSError) and error.strerror:
        place = f"{error.filename}: " if error.filename else ""
        return f"{place}{error.strerror}"
    return str(error)


def spare_the_loop() -> None:
    """Make Python's cyclic garbage collector visit young objects, and hardly ever all of them.

    A full collection stops the loop for about 0.25 s with ten thousand topics, and the default
    thresholds cause a dozen while these are loaded. The broker's objects have no cycles as a rule,
    so reference counts release them. A full collection still comes after two million new objects.
    """
    gc.freeze()
    gc.set_threshold(*COLLECTOR_THRESHOLDS)


def hurry_threads() -> None:
    """Let threads that have read from or synced the disk hand over their results soon."""
    sys.setswitchinterval(SWITCH_INTERVAL_SECONDS)


def set_up_logging(*, log_format: str, level: str) -> None:
    """Write all log records of this level and above to standard error."""
    handler = log_handler(sys.stderr, os.environ)
    handler.setFormatter(JsonFormatter() if log_format == "json" else TextFormatter())
    logging.basicConfig(handlers=[handler], level=level, force=True)


def load_config(options: StandaloneOptions) -> BrokerConfig:
    """The broker's settings from file, environment and `--set`; later ones override earlier ones.

    Raises:
        ConfigurationError: A name is unknown, a value is out of bounds, or the file is not UTF-8.
    """
    return load_settings(options.config_file, options.overrides)


def load_settings(
    config_file: Path | None, overrides: tuple[str, ...], *, is_of_cluster: bool = False
) -> BrokerConfig:
    """The settings from a file, the environment and the command line.

    Raises:
        ConfigurationError: A name is unknown, a value is out of bounds, or the file is not UTF-8.
    """
    try:
        text = "" if config_file is None else config_file.read_text("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{config_file}: expected text in UTF-8: {error}") from error
    if config_file is not None and any(map(holds_secret, property_lines(text))):
        warn_if_others_can_read("--config", config_file)
    return BrokerConfig.load(
        properties_text=text,
        properties_place=str(config_file or ""),
        environment=os.environ,
        overrides=overrides,
        is_of_cluster=is_of_cluster,
    )


def holds_secret(line: PropertyLine) -> bool:
    """Whether a line has a secret itself, not the path of a file with one."""
    is_path = line.value.startswith(("/", "file:"))
    return is_secret(line.name) and bool(line.value) and not is_path


async def serve(options: StandaloneOptions) -> None:
    """Start a broker, print its addresses, and stop it after a signal."""
    stopping = signals_to_event()
    config = load_config(options)
    broker = broker_of(options, config)
    async with broker:
        reach_of(config, options.host).log()
        sys.stdout.write(f"{ready_line(options, OpenPorts.of(broker))}\n")
        if options.ready_too:
            sys.stdout.write(f"{options.ready_too}\n")
        sys.stdout.flush()
        async with supervised(SystemClock()):
            await stopping.wait()


class OpenPorts(Struct, frozen=True, kw_only=True):
    """The URLs of all ports that are open, None where there is none.

    `service_url` and `web_service_url` are those with TLS where nothing answers in clear text.
    """

    service_url: str
    web_service_url: str
    service_url_tls: str | None = None
    web_service_url_tls: str | None = None

    @classmethod
    def of(cls, broker: Broker) -> Self:
        """Those of a broker that was started."""
        return cls(
            service_url=broker.service_url,
            web_service_url=broker.web_service_url,
            service_url_tls=broker.service_url_tls,
            web_service_url_tls=broker.web_service_url_tls,
        )

    def __str__(self) -> str:
        """Each port once: that of the binary protocol, that of HTTP, then further ones with TLS."""
        return " ".join(dict.fromkeys(filter(None, astuple(self))))


def ready_line(options: StandaloneOptions, ports: OpenPorts) -> str:
    """What is said when all ports answer; in JSON the members keep names and meaning.

    `event` is "ready", `service_url` for clients, `web_service_url` for HTTP, both once more with
    `_tls` for the ports with TLS, null where there is none, `data_dir` the directory, null in
    memory, and `pid` the process to send SIGTERM to.
    """
    directory = None if options.data_dir is None else str(options.data_dir.absolute())
    if options.is_ready_json:
        return ready_json(ports, {"data_dir": directory})
    data = "in memory" if directory is None else f"directory {directory}"
    return f"pulsar-py ready: {ports} data {data}"


def ready_json(ports: OpenPorts, further: Mapping[str, object]) -> str:
    """The line of any broker whose ports answer, with members of its kind beside those of all."""
    return json_line({"event": "ready", **asdict(ports), **further, "pid": os.getpid()})


def broker_of(options: StandaloneOptions, config: BrokerConfig) -> Broker:
    """A broker that is not started; options of the command line override settings."""
    reach = reach_of(config, options.host)
    config = with_ports(config, options.port, options.web_port)
    return Broker(
        data_dir=options.data_dir,
        config=config.replace(advertisedAddress=reach.advertised),
        host=reach.host,
        port=config.brokerServicePort,
        web_port=config.webServicePort,
    )


def reach_of(config: BrokerConfig, host: str | None, *, is_of_cluster: bool = False) -> Reach:
    """Where a broker listens, and who can reach it; `host` is that of the command line."""
    return Reach.of(
        host or config.bindAddress,
        config.advertisedAddress,
        is_authenticated=config.authenticationEnabled,
        is_of_cluster=is_of_cluster,
    )


def with_ports(config: BrokerConfig, port: int | None, web_port: int | None) -> BrokerConfig:
    """The settings with the ports of the command line, of which None changes nothing.

    A number is that of the port in clear text, unless the settings open the one with TLS alone: it
    is that one's then, since whoever left clear text out did not mean to have it on another port.
    """
    changes: dict[str, int] = {}
    for number, name in ((port, "brokerServicePort"), (web_port, "webServicePort")):
        if number is not None:
            has_tls_alone = (
                getattr(config, name) is None and getattr(config, f"{name}Tls") is not None
            )
            changes[f"{name}Tls" if has_tls_alone else name] = number
    return config.replace(**changes)


def signals_to_event() -> asyncio.Event:
    """An event that SIGTERM and SIGINT set; the same signal again has its default effect.

    The other signal after the first one sets the event again, without effect: supervisors send both
    in a row, and mean one stop.
    """
    loop = asyncio.get_running_loop()
    stopping = asyncio.Event()

    def stop(number: int) -> None:
        stopping.set()
        loop.remove_signal_handler(number)

    for number in _SIGNALS:
        loop.add_signal_handler(number, stop, number)
    return stopping
