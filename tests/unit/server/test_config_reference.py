"""config_reference: what is generated is fresh, and complete."""

from __future__ import annotations

from pathlib import Path

import pytest

from pulsar_py.server.config import BrokerConfig
from pulsar_py.server.config_reference import (
    CONF_PATH,
    REFERENCE_PATH,
    main,
    render_conf,
    render_reference,
)
from pulsar_py.server.properties_text import parse_properties

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("path", "text"), [(CONF_PATH, render_conf()), (REFERENCE_PATH, render_reference())]
)
def test_the_committed_file_is_what_make_docs_writes(path: Path, text: str) -> None:
    assert (ROOT / path).read_text(encoding="utf-8") == text, "stale: run `make docs`"


def test_the_sample_file_holds_the_defaults() -> None:
    assert BrokerConfig.load(properties_text=render_conf()) == BrokerConfig()
    assert parse_properties(render_conf()).keys() == BrokerConfig.declared().keys()


def test_every_setting_of_pulsars_has_a_place_in_both() -> None:
    conf, reference = render_conf(), render_reference()
    for name in BrokerConfig.settings_without_effect():
        assert f"\n#{name}=" in conf
        assert f"`{name}`" in reference
    for name in BrokerConfig.declared():
        assert f"| `{name}` |" in reference


def test_it_writes_below_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    main()
    assert (tmp_path / CONF_PATH).read_text(encoding="utf-8") == render_conf()
    assert (tmp_path / REFERENCE_PATH).read_text(encoding="utf-8") == render_reference()
