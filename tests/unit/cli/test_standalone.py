"""Settings, logging and signals of `pulsar-py standalone`; the process itself is in integration."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pulsar_py.cli.standalone import (
    COLLECTOR_THRESHOLDS,
    SWITCH_INTERVAL_SECONDS,
    StandaloneOptions,
    hurry_threads,
    load_config,
    ready_line,
    run,
    serve,
    set_up_logging,
    spare_the_loop,
)
from pulsar_py.common.errors import ConfigurationError
from pulsar_py.common.log_format import JsonFormatter, TextFormatter


@pytest.fixture(autouse=True)
def _collector_as_before() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)
    gc.unfreeze()


FREE = {"host": "127.0.0.1", "port": 0, "web_port": 0}


@pytest.fixture
def root_logger() -> object:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield root
    root.handlers[:], root.level = handlers, level


def test_settings_come_from_file_then_environment_then_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "broker.conf"
    file.write_text("maxMessageSize=1000\nbrokerServicePort=1\nwebServicePort=2\n")
    monkeypatch.setenv("PULSAR_PREFIX_brokerServicePort", "3")
    monkeypatch.setenv("PULSAR_PREFIX_webServicePort", "4")
    config = load_config(StandaloneOptions(config_file=file, overrides=("webServicePort=5",)))
    assert config.maxMessageSize == 1000
    assert config.brokerServicePort == 3
    assert config.webServicePort == 5


@pytest.mark.parametrize(
    ("line", "mode", "is_warned"),
    [
        ("tokenSecretKey=AAAA", 0o644, True),
        ("tokenSecretKey=AAAA", 0o600, False),
        ("tokenSecretKey=file:///secret.key", 0o644, False),
        ("tlsKeyStorePassword=p", 0o640, True),
        ("clusterName=c", 0o644, False),
    ],
)
def test_a_file_with_a_secret_that_others_can_read_brings_a_warning(
    *, line: str, mode: int, is_warned: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "broker.conf"
    file.write_text(line)
    file.chmod(mode)
    load_config(StandaloneOptions(config_file=file))
    assert ("can be read by others" in caplog.text) is is_warned


def test_an_unknown_setting_names_the_nearest() -> None:
    with pytest.raises(ConfigurationError, match="maxMessageSize"):
        load_config(StandaloneOptions(overrides=("maxMesageSize=1",)))


def test_configuration_that_is_no_text_names_the_file(tmp_path: Path) -> None:
    file = tmp_path / "broker.conf"
    file.write_bytes(b"webServicePort=\x98")
    with pytest.raises(
        ConfigurationError, match=r"broker\.conf: expected text in UTF-8.*position 15"
    ):
        load_config(StandaloneOptions(config_file=file))


def test_what_keeps_it_from_starting_is_one_line_and_exit_code_1(
    capsys: pytest.CaptureFixture[str], root_logger: logging.Logger
) -> None:
    assert run(StandaloneOptions(overrides=("noSuchSetting=1",))) == 1
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("pulsar-py: unknown setting noSuchSetting")


@pytest.mark.parametrize(
    ("log_format", "formatter"), [("text", TextFormatter), ("json", JsonFormatter)]
)
def test_logs_have_the_format_asked_for(
    log_format: str, formatter: type[logging.Formatter], root_logger: logging.Logger
) -> None:
    set_up_logging(log_format=log_format, level="WARNING")
    assert root_logger.level == logging.WARNING
    assert [type(each.formatter) for each in root_logger.handlers] == [formatter]


@pytest.mark.parametrize(
    "numbers",
    [
        (signal.SIGTERM,),
        (signal.SIGINT,),
        (signal.SIGINT, signal.SIGTERM),
        (signal.SIGTERM, signal.SIGINT),
    ],
)
async def test_signals_stop_it_once_each(
    numbers: tuple[signal.Signals, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    printed = ""
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        group.create_task(serve(StandaloneOptions(data_dir=None, **FREE)))
        while "\n" not in printed:
            await asyncio.sleep(0.001)
            printed += capsys.readouterr().out
        for number in numbers:
            os.kill(os.getpid(), number)
            await asyncio.sleep(0)
    words = printed.split()
    assert words[:2] == ["pulsar-py", "ready:"]
    assert words[2].startswith("pulsar://127.0.0.1:")
    assert words[3].startswith("http://127.0.0.1:")
    assert words[4:] == ["data", "in", "memory"]


def test_the_ready_line_in_json_has_what_a_program_needs(tmp_path: Path) -> None:
    urls = "pulsar://localhost:1", "http://localhost:2"
    options = StandaloneOptions(data_dir=None, is_ready_json=True)
    assert json.loads(ready_line(options, *urls)) == {
        "event": "ready",
        "service_url": "pulsar://localhost:1",
        "web_service_url": "http://localhost:2",
        "data_dir": None,
        "pid": os.getpid(),
    }
    options = StandaloneOptions(data_dir=tmp_path / "a b", is_ready_json=True)
    assert json.loads(ready_line(options, *urls))["data_dir"] == str(tmp_path / "a b")
    assert "\n" not in ready_line(options, *urls)


def test_threads_wait_a_moment_for_a_busy_loop() -> None:
    before = sys.getswitchinterval()
    try:
        hurry_threads()
        assert sys.getswitchinterval() == pytest.approx(SWITCH_INTERVAL_SECONDS)
    finally:
        sys.setswitchinterval(before)


def test_the_cyclic_collector_leaves_what_is_old_alone() -> None:
    before = gc.get_freeze_count()
    spare_the_loop()
    assert gc.get_threshold() == COLLECTOR_THRESHOLDS
    assert gc.get_freeze_count() > before
