"""Each name of Apache Pulsar's page is on ours, or is listed with a reason; never both."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pulsar_py.admin.metrics.absent_names import ABSENT, reason_for
from pulsar_py.admin.metrics.topic_names import THROTTLED_NAMES
from pulsar_py.testing.clock import VirtualClock, run_virtual
from tests.package_source import ROOT
from tests.unit.admin.metrics.metric_pages import Labels, page_text, parsed
from tests.unit.admin.metrics.test_topic_names import load
from tests.unit.settings.parts import broker

PULSARS = json.loads((ROOT / "tests/recordings/metrics_names.json").read_text())
"""Names with labels, as read from Apache Pulsar 4.2.4."""

SHOWN_THOUGH_COVERED = {"pulsar_broker_lookup_pending_requests"}
"""Names that begin like absent ones."""


@pytest.fixture(scope="module")
def metrics() -> dict[str, dict[Labels, float]]:
    async def run() -> dict[str, dict[Labels, float]]:
        async with broker(VirtualClock()) as rig:
            await load(rig)
            return parsed(await page_text(rig.broker))

    return run_virtual(run())


def test_each_name_is_there_or_listed(metrics: dict[str, dict[Labels, float]]) -> None:
    missing = [name for name in PULSARS if name not in metrics and reason_for(name) is None]
    assert missing == sorted(THROTTLED_NAMES), "these are there once a limit has held something"
    both = {name for name in PULSARS if name in metrics and reason_for(name)}
    assert both == SHOWN_THOUGH_COVERED


def test_each_listed_beginning_is_needed() -> None:
    begins = {each: [name for name in PULSARS if name.startswith(each)] for each in ABSENT}
    assert not [each for each, names in begins.items() if not names]


def test_what_is_there_has_pulsars_labels(metrics: dict[str, dict[Labels, float]]) -> None:
    for name in PULSARS.keys() & metrics.keys():
        for key in metrics[name]:
            assert sorted(label for label, _ in key) in PULSARS[name]["labels"], name


def test_the_document_has_all_of_them() -> None:
    text = Path(ROOT / "docs/METRICS.md").read_text()
    for begin, reason in ABSENT.items():
        assert f"| `{begin}` | {reason} |" in text, begin
