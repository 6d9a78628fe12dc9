"""Words of `pulsar-py standalone` that are read without click mean what click reads in them."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pulsar_py.cli import standalone
from pulsar_py.cli.commands import main
from pulsar_py.cli.standalone_options import StandaloneOptions, plain_options


@pytest.fixture
def click_reads(monkeypatch: pytest.MonkeyPatch) -> list[StandaloneOptions]:
    """What click's command would have run."""
    found: list[StandaloneOptions] = []

    def run(options: StandaloneOptions) -> int:
        found.append(options)
        return 0

    monkeypatch.setattr(standalone, "run", run)
    return found


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory to work in, with a directory `d`, a file `f` and nothing else."""
    (tmp_path / "d").mkdir()
    (tmp_path / "f").write_text("")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("", StandaloneOptions(data_dir=Path("data"))),
        ("--in-memory", StandaloneOptions()),
        ("--data-dir d", StandaloneOptions(data_dir=Path("d"))),
        ("--data-dir=new/one", StandaloneOptions(data_dir=Path("new/one"))),
        (
            "--in-memory --host h --port 0 --web-port 65535 --config f --log-format json",
            StandaloneOptions(
                host="h", port=0, web_port=65535, config_file=Path("f"), log_format="json"
            ),
        ),
        (
            "--in-memory --set a=b --set=c=d=e --ready json --ready-too x",
            StandaloneOptions(overrides=("a=b", "c=d=e"), is_ready_json=True, ready_too="x"),
        ),
    ],
)
@pytest.mark.usefixtures("there")
def test_the_usual_words_need_no_click(line: str, expected: StandaloneOptions) -> None:
    assert plain_options(line.split()) == expected


@pytest.mark.parametrize(
    "line",
    [
        "--help",
        "extra",
        "--port",
        "--port x",
        "--port 65536",
        "--port ²",
        "--port ٣",
        "--port -1",
        "--port 1 --port 2",
        "--no-such 1",
        "--in-memory --data-dir d",
        "--in-memory=yes",
        "--data-dir f",
        "--config d",
        "--config missing",
        "--log-format xml",
        "--ready xml",
        "--log-level DEBUG",
        "--host=",
        "--host -h",
        "--in-mem",
        "--",
    ],
)
@pytest.mark.usefixtures("there")
def test_everything_else_is_left_to_click(line: str) -> None:
    assert plain_options(line.split()) is None


@pytest.mark.usefixtures("there")
def test_a_file_in_place_of_the_usual_directory_is_left_to_click() -> None:
    Path("data").write_text("")
    assert plain_options([]) is None


NAMES = ("data-dir", "host", "port", "web-port", "config", "set", "log-format", "log-level")
WORDS = st.sampled_from(
    [f"--{name}" for name in (*NAMES, "ready", "ready-too", "in-memory", "in-m", "help", "x")]
)
VALUES = st.sampled_from(
    [
        "d",
        "f",
        "new",
        "0",
        "080",
        "8_0",
        " 1",
        "+1",
        "٣",
        "65536",
        "a=b",
        "json",
        "JSON",
        "text",
        "",
        "-",
        "-x",
        "--port",
        "INFO",
        "h",
        "~",
    ]
)
PARTS = st.one_of(
    st.tuples(WORDS, VALUES).map(list),
    st.tuples(WORDS, VALUES).map(lambda both: ["=".join(both)]),
    st.just(["--in-memory"]),
    VALUES.map(lambda value: [value]),
)
LINES = st.lists(PARTS, max_size=4).map(lambda parts: [word for part in parts for word in part])


@given(words=LINES)
@settings(max_examples=400, suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.usefixtures("there")
def test_what_is_read_without_click_click_reads_too(
    click_reads: list[StandaloneOptions], words: list[str]
) -> None:
    plain = plain_options(words)
    if plain is None:
        return
    click_reads.clear()
    done = CliRunner().invoke(main, ["standalone", *words])
    assert (click_reads, done.exit_code) == ([plain], 0), done.output
