"""Each metric has a text; one that has none fails, so that none can be forgotten."""

from __future__ import annotations

import pytest

from pulsar_py.admin.metrics.help_texts import help_text
from pulsar_py.admin.metrics.store_lines import (
    BOOKIE_METRICS,
    BOOKKEEPER_METRICS,
    CURSOR_METRICS,
    HOOK_ERRORS,
    JOURNAL_METRICS,
    REFUSED,
    STORAGE_METRICS,
    ZOOKEEPER_METRICS,
)
from pulsar_py.admin.metrics.topic_names import (
    COMPACTION_NAMES,
    CONSUMER_NAMES,
    PRODUCER_NAMES,
    SUBSCRIPTION_NAMES,
    THROTTLED_NAMES,
    TOPIC_NAMES,
    WRITTEN_NAMES,
)
from pulsar_py.testing.clock import VirtualClock, run_virtual
from tests.unit.admin.metrics.metric_pages import page_text
from tests.unit.admin.metrics.test_topic_names import load
from tests.unit.settings.parts import broker

STORES = BOOKIE_METRICS | BOOKKEEPER_METRICS | JOURNAL_METRICS | STORAGE_METRICS | ZOOKEEPER_METRICS


def test_what_a_page_rarely_has_has_a_text() -> None:
    names = {name for name, _ in STORES.values()} | {*CURSOR_METRICS.values(), HOOK_ERRORS, REFUSED}
    names |= {*TOPIC_NAMES, *WRITTEN_NAMES, *SUBSCRIPTION_NAMES, *CONSUMER_NAMES, *PRODUCER_NAMES}
    for name in sorted(names | {*COMPACTION_NAMES, *THROTTLED_NAMES}):
        assert help_text(name).endswith("."), name


def test_a_page_has_each_text_before_its_type() -> None:
    async def run() -> str:
        async with broker(VirtualClock()) as rig:
            await load(rig)
            return await page_text(rig.broker)

    lines = run_virtual(run()).splitlines()
    types = [number for number, each in enumerate(lines) if each.startswith("# TYPE ")]
    assert len(types) > 100
    for number in types:
        name = lines[number].split(" ")[2]
        assert lines[number - 1] == f"# HELP {name} {help_text(name)}"


def test_the_words_fit_the_name() -> None:
    assert help_text("pulsar_broker_rate_in") == help_text("pulsar_rate_in")
    assert "bytes" in help_text("pulsar_entry_size_le_128")
    assert "without the wait" in help_text("pulsar_storage_ledger_write_latency_le_5")
    with pytest.raises(KeyError):
        help_text("pulsar_nothing_of_the_kind")
