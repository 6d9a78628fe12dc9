"""config_reference: what is generated is fresh, and complete."""

from __future__ import annotations

from pathlib import Path

import pytest

from pulsar_py.server.config import BrokerConfig
from pulsar_py.server.config_reference import (
    CLUSTER_CONF_PATH,
    CONF_PATH,
    REFERENCE_PATH,
    main,
    render_cluster_conf,
    render_conf,
    render_reference,
)
from pulsar_py.server.properties_text import parse_properties
from pulsar_py.server.settings.cluster import CLUSTER_CATEGORIES
from pulsar_py.server.settings.storage import BOOKIE

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (CONF_PATH, render_conf()),
        (CLUSTER_CONF_PATH, render_cluster_conf()),
        (REFERENCE_PATH, render_reference()),
    ],
)
def test_the_committed_file_is_what_make_docs_writes(path: Path, text: str) -> None:
    assert (ROOT / path).read_text(encoding="utf-8") == text, "stale: run `make docs`"


def names_in(*categories: str) -> set[str]:
    declared = BrokerConfig.declared().values()
    return {each.name for each in declared if each.category in categories}


def test_the_sample_file_holds_the_defaults() -> None:
    assert BrokerConfig.load(properties_text=render_conf()) == BrokerConfig()
    left_out = names_in(*CLUSTER_CATEGORIES)
    written = BrokerConfig.declared().keys() - left_out - {"bindAddress"}
    assert parse_properties(render_conf()).keys() == written


@pytest.mark.parametrize("text", [render_conf(), render_cluster_conf()])
def test_where_to_listen_is_left_to_the_command_but_has_its_place(text: str) -> None:
    assert "\n#bindAddress=\n" in text
    config = BrokerConfig.load(
        properties_text=text, environment={"bindAddress": "h"}, is_of_cluster=True
    )
    assert config.bindAddress == "h"


def test_the_file_of_a_cluster_holds_the_defaults_but_for_its_name() -> None:
    text = render_cluster_conf()
    config = BrokerConfig.load(properties_text=text, is_of_cluster=True)
    assert config == BrokerConfig(clusterName="")
    written = BrokerConfig.declared().keys() - names_in(BOOKIE) - {"bindAddress"}
    assert parse_properties(text).keys() == written


def test_what_is_refused_in_a_cluster_stands_under_a_heading_of_its_own() -> None:
    _, _, rest = render_cluster_conf().partition("### Fixed")
    fixed, _, without_effect = rest.partition("### Without effect")
    for name, ignored in BrokerConfig.settings_without_effect().items():
        assert f"\n#{name}=" in (fixed if ignored.is_of_cluster else without_effect)


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
    written = (tmp_path / CLUSTER_CONF_PATH).read_text(encoding="utf-8")
    assert written == render_cluster_conf()
    assert (tmp_path / REFERENCE_PATH).read_text(encoding="utf-8") == render_reference()
