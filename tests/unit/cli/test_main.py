"""The command starts a broker without click, and leaves everything else to it."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Iterator

import pytest

from pulsar_py.cli import main, standalone
from pulsar_py.cli.standalone_options import StandaloneOptions

WITHOUT_CLICK = """
import gc, sys
from pulsar_py.cli import standalone
frozen = gc.get_freeze_count
standalone.run = lambda options: print(
    options.port, "click" in sys.modules, gc.isenabled(), frozen() > 10_000
)
from pulsar_py.cli.main import main
try: main(["standalone", "--in-memory", "--port", "7"])
except SystemExit: pass
"""


def test_a_start_in_the_usual_words_loads_no_click_and_keeps_the_collector_off_modules() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_CLICK], capture_output=True, text=True, check=True
    )
    assert done.stdout == "7 False True True\n"


@pytest.fixture(autouse=True)
def _as_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What these tests change in their own process."""
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    yield
    gc.unfreeze()


def test_a_mistake_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main.main(["standalone", "--prot", "7"], prog_name="pulsar-py")
    assert ended.value.code == 2
    assert "Error: No such option '--prot'" in capsys.readouterr().err


def test_other_commands_get_their_words(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main.main(["--version"], prog_name="pulsar-py")
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith("pulsar-py, version ")


def test_the_exit_code_is_the_brokers(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[StandaloneOptions] = []
    monkeypatch.setattr(standalone, "run", lambda options: seen.append(options) or 3)
    with pytest.raises(SystemExit) as ended:
        main.main(["standalone", "--in-memory"])
    assert ended.value.code == 3
    assert seen == [StandaloneOptions()]


def test_an_interrupt_before_the_broker_minds_it_is_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(_: StandaloneOptions) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(standalone, "run", run)
    with pytest.raises(SystemExit) as ended:
        main.main(["standalone", "--in-memory"])
    assert ended.value.code == 1
    assert capsys.readouterr().err == "\nAborted!\n"
