"""The work of `pulsar-py standalone`: runs a broker in this process until a signal ends it (edge).

When both ports answer, one line on standard output says so, with their addresses. Logs go to
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
from dataclasses import dataclass
from pathlib import Path

import uvloop

from pulsar_py.common.errors import ConfigurationError, PulsarError
from pulsar_py.common.log_format import JsonFormatter, TextFormatter
from pulsar_py.server.config import BrokerConfig
from pulsar_py.standalone import Broker

COLLECTOR_THRESHOLDS = (5000, 4, 100)
"""Thresholds of Python's cyclic garbage collector: how many new objects start a collection of the
youngest generation (0.5 ms), how many of these start one of the next (3 ms), and how many of those
a full one."""

SWITCH_INTERVAL_SECONDS = 0.0005
"""How long a thread that has read or synced waits at most for the interpreter while the loop is
busy. Python's default is 5 ms, in which the loop sends three megabytes: a consumer that reads a
backlog would wait that long for each further read."""

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


@dataclass(frozen=True, slots=True, kw_only=True)
class StandaloneOptions:
    """The options of the command line.

    Without `data_dir` all data is in memory. For the other options None means the broker's setting.
    """

    data_dir: Path | None = None
    host: str | None = None
    port: int | None = None
    web_port: int | None = None
    config_file: Path | None = None
    overrides: tuple[str, ...] = ()
    log_format: str = "text"
    log_level: str = "INFO"


def run(options: StandaloneOptions) -> int:
    """Run a broker until it is stopped; returns the exit code."""
    set_up_logging(log_format=options.log_format, level=options.log_level)
    spare_the_loop()
    hurry_threads()
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(serve(options))
            # The process ends, so nothing has to be collected: at its exit the interpreter would
            # look for cycles, for 0.15 ms a topic.
            gc.freeze()
    except (PulsarError, OSError) as error:
        sys.stderr.write(f"pulsar-py: {_one_line(error)}\n")
        return 1
    return 0


def _one_line(error: Exception) -> str:
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
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter() if log_format == "json" else TextFormatter())
    logging.basicConfig(handlers=[handler], level=level, force=True)


def load_config(options: StandaloneOptions) -> BrokerConfig:
    """The broker's settings from file, environment and `--set`; later ones override earlier ones.

    Raises:
        ConfigurationError: A name is unknown, a value is out of bounds, or the file is not UTF-8.
    """
    try:
        text = "" if options.config_file is None else options.config_file.read_text("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigurationError(
            f"{options.config_file}: expected text in UTF-8: {error}"
        ) from error
    return BrokerConfig.load(
        properties_text=text,
        properties_place=str(options.config_file or ""),
        environment=os.environ,
        overrides=options.overrides,
    )


async def serve(options: StandaloneOptions) -> None:
    """Start a broker, print its addresses, and stop it after a signal."""
    stopping = _signals_to_event()
    broker = broker_of(options, load_config(options))
    async with broker:
        data = (
            "in memory" if options.data_dir is None else f"directory {options.data_dir.absolute()}"
        )
        sys.stdout.write(
            f"pulsar-py ready: {broker.service_url} {broker.web_service_url} data {data}\n"
        )
        sys.stdout.flush()
        await stopping.wait()


def broker_of(options: StandaloneOptions, config: BrokerConfig) -> Broker:
    """A broker that is not started; options of the command line override settings."""
    return Broker(
        data_dir=options.data_dir,
        config=config,
        host=options.host or config.bindAddress,
        port=_port(options.port, config.brokerServicePort),
        web_port=_port(options.web_port, config.webServicePort),
    )


def _port(wanted: int | None, configured: int | None) -> int:
    """The port of the command line, else that of the settings; 0 (a free port) if both are None."""
    return (configured or 0) if wanted is None else wanted


def _signals_to_event() -> asyncio.Event:
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
