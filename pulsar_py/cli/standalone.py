"""`pulsar-py standalone`: one broker in this process until a signal ends it (edge).

Says in one line on standard output when both ports answer and where; logs go to standard error. The
first SIGTERM or SIGINT stops the broker cleanly with everything flushed, the same one again kills.
Exit codes: 0 after a clean stop, 1 when it could not start (one line says why).
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
"""Objects more before the youngest are looked at (0.5 ms); how often that before the next
generation is (3 ms); how often that before all are."""

SWITCH_INTERVAL_SECONDS = 0.0005
"""How long a thread that has read or synced waits at most for the interpreter while the loop is
busy. In Python's 5 ms that sends three megabytes: readers of a backlog would wait for the next."""

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


@dataclass(frozen=True, slots=True, kw_only=True)
class StandaloneOptions:
    """The command line. `data_dir` None keeps everything in memory; None elsewhere: the setting."""

    data_dir: Path | None = None
    host: str | None = None
    port: int | None = None
    web_port: int | None = None
    config_file: Path | None = None
    overrides: tuple[str, ...] = ()
    log_format: str = "text"
    log_level: str = "INFO"


def run(options: StandaloneOptions) -> int:
    """Run one broker to its end; returns the exit code."""
    set_up_logging(log_format=options.log_format, level=options.log_level)
    spare_the_loop()
    hurry_threads()
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(serve(options))
            # What is left goes with the process: the interpreter would look for cycles in it, for
            # 0.15 ms a topic.
            gc.freeze()
    except (PulsarError, OSError) as error:
        sys.stderr.write(f"pulsar-py: {_one_line(error)}\n")
        return 1
    return 0


def _one_line(error: Exception) -> str:
    """What went wrong, without the number that the system gives it."""
    if isinstance(error, OSError) and error.strerror:
        place = f"{error.filename}: " if error.filename else ""
        return f"{place}{error.strerror}"
    return str(error)


def spare_the_loop() -> None:
    """Let the cyclic collector look at what is young alone, and hardly ever at everything.

    A full collection stops the loop for about 0.25 s with ten thousand topics, and with the default
    thresholds there are a dozen while they are loaded; what is released here goes by its count of
    references. One still comes after two million objects more, should there be cycles.
    """
    gc.freeze()
    gc.set_threshold(*COLLECTOR_THRESHOLDS)


def hurry_threads() -> None:
    """Let what the disk's threads bring be handed over soon."""
    sys.setswitchinterval(SWITCH_INTERVAL_SECONDS)


def set_up_logging(*, log_format: str, level: str) -> None:
    """Send every record from `level` to standard error."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter() if log_format == "json" else TextFormatter())
    logging.basicConfig(handlers=[handler], level=level, force=True)


def load_config(options: StandaloneOptions) -> BrokerConfig:
    """The settings: file, then environment, then `--set`.

    Raises:
        ConfigurationError: A name is unknown, a value out of bounds, or the file no text.
    """
    try:
        text = "" if options.config_file is None else options.config_file.read_text("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{options.config_file}: no UTF-8 text: {error}") from error
    return BrokerConfig.load(
        properties_text=text,
        properties_place=str(options.config_file or ""),
        environment=os.environ,
        overrides=options.overrides,
    )


async def serve(options: StandaloneOptions) -> None:
    """Start a broker, say so, and stop it after a signal."""
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
    """The broker asked for, not started; the command line goes before the settings."""
    return Broker(
        data_dir=options.data_dir,
        config=config,
        host=options.host or config.bindAddress,
        port=_port(options.port, config.brokerServicePort),
        web_port=_port(options.web_port, config.webServicePort),
    )


def _port(wanted: int | None, configured: int | None) -> int:
    """The port of the command line, else of the settings; a setting left empty takes a free one."""
    return (configured or 0) if wanted is None else wanted


def _signals_to_event() -> asyncio.Event:
    """An event that the first SIGTERM or SIGINT sets; the same one again has its usual effect.

    Supervisors send one after the other, and mean the same by both.
    """
    loop = asyncio.get_running_loop()
    stopping = asyncio.Event()

    def stop(number: int) -> None:
        stopping.set()
        loop.remove_signal_handler(number)

    for number in _SIGNALS:
        loop.add_signal_handler(number, stop, number)
    return stopping
