"""A page of metrics as data, read by the rules of the text format and not by the code under test."""

from __future__ import annotations

import re

from pulsar_py.admin.http_messages import Request, whole
from pulsar_py.admin.metrics.page import Metrics
from pulsar_py.admin.metrics.process_figures import ProcessFigures, process_figures
from pulsar_py.admin.metrics.store_lines import ledger_store_lines, metadata_lines
from pulsar_py.ledgers.store import LedgerStore
from pulsar_py.metadata.store import MetadataStore
from pulsar_py.server.broker import BrokerService

_LINE = re.compile(r"([a-zA-Z_:]\w*)\{(.*)\} (\S+)")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')

Labels = tuple[tuple[str, str], ...]


async def _process_now() -> ProcessFigures:
    """Without a thread, for which virtual time would not wait."""
    return process_figures()


def page_of(broker: BrokerService) -> Metrics:
    """The page; rates of it are counted from its first look on."""
    return Metrics(broker, _process_now)


async def page_text(broker: BrokerService, page: Metrics | None = None) -> str:
    page = page or page_of(broker)
    response = await page.page(Request(method="GET", raw_path="/metrics"))
    return (await whole(response)).body.decode()


def shown(name: str, value: float) -> float:
    """A value of a metric as tests see it; `tests.metric_mutations` puts another one here."""
    del name
    return value


def of_stores(store: LedgerStore | MetadataStore) -> dict[str, dict[Labels, float]]:
    """The metrics of a store alone."""
    lines = ledger_store_lines if isinstance(store, LedgerStore) else metadata_lines
    return parsed("".join(lines(store, "c")))


def only(metrics: dict[str, dict[Labels, float]], name: str) -> float:
    """The value of a metric that has one line."""
    (value,) = metrics[name].values()
    return value


def parsed(text: str) -> dict[str, dict[Labels, float]]:
    """Values by metric and labels; asserts that metrics stand together and lines once."""
    found: dict[str, dict[Labels, float]] = {}
    kinds: set[str] = set()
    last = ""
    for line in text.splitlines():
        if line.startswith("# HELP "):
            continue
        if line.startswith("# TYPE "):
            _, _, last, _ = line.split(" ")
            assert last not in kinds, f"{last} twice"
            kinds.add(last)
            continue
        match = _LINE.fullmatch(line)
        assert match, line
        name, labels, value = match.groups()
        assert name.startswith(last), f"{name} after the TYPE of {last}"
        key = tuple((each[1], each[2]) for each in _LABEL.finditer(labels))
        lines = found.setdefault(name, {})
        assert key not in lines, line
        lines[key] = shown(last, float(value))
    return found


def by(metrics: dict[str, dict[Labels, float]], name: str, *labels: str) -> dict[str, float]:
    """Values of a metric by its other labels than those of the place, joined."""
    return {
        "/".join(value for label, value in key if label in labels): value
        for key, value in metrics.get(name, {}).items()
    }
