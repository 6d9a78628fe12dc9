"""Metrics that documents name are on the page of metrics, or listed as absent with a reason."""

from __future__ import annotations

import re
from functools import cache

import pytest

from pulsar_py.admin.metrics.absent_names import ABSENT
from tests.document_texts import NAMES, code_spans, literals, text_of

ELSEWHERE = {
    "docs/client/TELEMETRY.md": "names of OpenTelemetry, as a collector writes them",
}
"""Documents with metrics of something else than a broker."""

NO_METRICS = {
    "pulsar_api", "pulsar_api_enums",  # modules
    "pulsar_broker",  # a fixture
    "pulsar_event",  # a name of a schema
    "pulsar_entry_size_overflow", "pulsar_storage_read_latency_count", "pulsar_replication_…",
    # three that public dashboards ask for, and METRICS says are nowhere
    "pulsar_entry_size_le_overflow",  # the last bucket of `pulsar_entry_size_le_…`
}  # fmt: skip

_NAME = re.compile(r"\bpulsar_(?!py\b(?!_))\w+…?")


@cache
def exported() -> frozenset[str]:
    """Names that the code writes: literals of that one word."""
    return frozenset(text for text in literals() if re.fullmatch(r"pulsar_\w+", text))


def is_known(name: str) -> bool:
    """Whether a name, or the beginning of names with `…` or `_` at its end, is there."""
    begin = name.rstrip("…")
    if begin in exported() or begin in ABSENT:
        return True
    return begin != name and any(each.startswith(begin) for each in exported())


@pytest.mark.parametrize("name", sorted(set(NAMES) - ELSEWHERE.keys()))
def test_metrics_that_documents_name_exist(name: str) -> None:
    spans = [span for span in code_spans(text_of(name)) if "/" not in span]
    named = {found for span in spans for found in _NAME.findall(span)} - NO_METRICS
    assert not {each for each in named if not is_known(each)}


def test_a_name_that_is_nowhere_is_found() -> None:
    assert is_known("pulsar_msg_backlog")
    assert is_known("pulsar_ml_cache_…")
    assert not is_known("pulsar_msg_backlogs")
    assert not is_known("pulsar_ml_cache_")
    assert not is_known("pulsar_nothing_…")
