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
from msgspec.structs import replace

from pulsar_py.cli.standalone import (
    COLLECTOR_THRESHOLDS,
    SWITCH_INTERVAL_SECONDS,
    OpenPorts,
    StandaloneOptions,
    hurry_threads,
    load_config,
    ready_line,
    run,
    serve,
    set_up_logging,
    spare_the_loop,
    with_ports,
)
from pulsar_py.common.errors import ConfigurationError
from pulsar_py.common.log_format import JsonFormatter, TextFormatter
from pulsar_py.server.config import BrokerConfig


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
    assert lines[0].startswith("Error: unknown setting noSuchSetting")


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


IN_CLEAR = OpenPorts(service_url="pulsar://h:1", web_service_url="http://h:2")
TLS_ALONE = OpenPorts(
    service_url="pulsar+ssl://h:3",
    web_service_url="https://h:4",
    service_url_tls="pulsar+ssl://h:3",
    web_service_url_tls="https://h:4",
)
ALL_PORTS = replace(IN_CLEAR, service_url_tls="pulsar+ssl://h:3", web_service_url_tls="https://h:4")


def test_the_ready_line_in_json_has_what_a_program_needs(tmp_path: Path) -> None:
    options = StandaloneOptions(data_dir=None, is_ready_json=True)
    assert json.loads(ready_line(options, IN_CLEAR)) == {
        "event": "ready",
        "service_url": "pulsar://h:1",
        "web_service_url": "http://h:2",
        "service_url_tls": None,
        "web_service_url_tls": None,
        "data_dir": None,
        "pid": os.getpid(),
    }
    options = StandaloneOptions(data_dir=tmp_path / "a b", is_ready_json=True)
    found = json.loads(ready_line(options, ALL_PORTS))
    assert found["data_dir"] == str(tmp_path / "a b")
    assert (found["service_url"], found["service_url_tls"]) == ("pulsar://h:1", "pulsar+ssl://h:3")
    assert (found["web_service_url"], found["web_service_url_tls"]) == ("http://h:2", "https://h:4")
    assert "\n" not in ready_line(options, ALL_PORTS)


@pytest.mark.parametrize(
    ("ports", "words"),
    [
        (IN_CLEAR, "pulsar://h:1 http://h:2"),
        (TLS_ALONE, "pulsar+ssl://h:3 https://h:4"),
        (ALL_PORTS, "pulsar://h:1 http://h:2 pulsar+ssl://h:3 https://h:4"),
    ],
)
def test_the_ready_line_names_each_open_port_once(ports: OpenPorts, words: str) -> None:
    line = ready_line(StandaloneOptions(data_dir=None), ports)
    assert line == f"pulsar-py ready: {words} data in memory"


NO_CLEAR_TEXT = {"brokerServicePort": "", "webServicePort": ""}
TLS = {"brokerServicePortTls": "6651", "webServicePortTls": "8443"}


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, (1, 2, None, None)),
        (TLS, (1, 2, 6651, 8443)),
        (NO_CLEAR_TEXT, (1, 2, None, None)),
        (NO_CLEAR_TEXT | TLS, (None, None, 1, 2)),
        ({"brokerServicePort": "", "brokerServicePortTls": "6651"}, (None, 2, 1, None)),
        ({"webServicePort": "", "webServicePortTls": "8443"}, (1, None, None, 2)),
    ],
    ids=["nothing set", "beside TLS", "neither", "TLS alone", "TLS alone, binary", "HTTPS alone"],
)
def test_ports_of_the_command_line_open_no_clear_text_where_the_settings_have_tls_alone(
    settings: dict[str, str], expected: tuple[int | None, ...]
) -> None:
    config = BrokerConfig.from_texts(settings)
    found = with_ports(config, 1, 2)
    assert expected == (
        found.brokerServicePort,
        found.webServicePort,
        found.brokerServicePortTls,
        found.webServicePortTls,
    )
    assert with_ports(config, None, None) == config


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
