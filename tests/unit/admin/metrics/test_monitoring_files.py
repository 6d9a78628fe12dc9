"""The dashboard and alert rules under `docker/monitoring` ask for metrics that the page has."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from pulsar_py.testing.clock import VirtualClock, run_virtual
from tests.package_source import ROOT
from tests.unit.admin.metrics.metric_pages import page_text, parsed
from tests.unit.admin.metrics.test_topic_names import load
from tests.unit.settings.parts import broker

MONITORING = ROOT / "docker" / "monitoring"
_METRIC = re.compile(r"\b(?:pulsar|process)_\w+")


def shown() -> set[str]:
    async def run() -> set[str]:
        async with broker(VirtualClock()) as rig:
            await load(rig)
            return set(parsed(await page_text(rig.broker)))

    return run_virtual(run())


def queries() -> Iterator[str]:
    dashboard = json.loads((MONITORING / "dashboard.json").read_text())
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            yield target["expr"]
    for line in (MONITORING / "alerts.yml").read_text().splitlines():
        if line.strip().startswith("expr:"):
            yield line.partition("expr:")[2]


def test_each_metric_asked_for_is_on_the_page() -> None:
    asked = {name for query in queries() for name in _METRIC.findall(query)}
    assert len(asked) > 20
    assert not asked - shown()
