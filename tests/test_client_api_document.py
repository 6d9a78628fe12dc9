"""The client's API reference is fresh, and has everything that is public."""

from __future__ import annotations

import pytest

import pulsar_py
import pulsar_py.schema
import pulsar_py.telemetry
from docs import client_api
from tests.package_source import ROOT


def test_the_reference_is_not_stale() -> None:
    written = (ROOT / client_api.PATH).read_text(encoding="utf-8")
    assert written == client_api.render(), "run `make docs`"


def test_everything_public_is_in_it_once() -> None:
    placed = [name for names in client_api.sections().values() for name in names]
    packages = (pulsar_py, pulsar_py.schema, pulsar_py.telemetry)
    public = {name for package in packages for name in package.__all__}
    assert public - client_api.NOT_OF_THE_CLIENT <= set(placed)
    assert len(placed) == len(set(placed))


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("JsonSchema", "    record_cls: type[T],"),
        ("AvroSchema", "- `properties`: Properties that the broker stores with the schema."),
        ("ConsumerDeadLetterPolicy", "| `dead_letter_topic` | `str \\| None` | `None` | "),
        ("TableViewOptions", "| `receiver_queue_size` | `int` | `1000` | "),
        ("TableViewOptions", "| `is_read_compacted` | `bool` |  | Read each key's last value only"),
        ("TracingProducerInterceptor", "TracingProducerInterceptor(tracer_provider: "),
        ("observe", "- `meter_provider`: None for the global one."),
    ],
)
def test_what_a_newcomer_looks_for_is_in_it(name: str, line: str) -> None:
    assert any(each.startswith(line) for each in client_api.describe(name))


def test_options_that_are_not_taken_are_not_listed() -> None:
    assert not any("reader_name" in each for each in client_api.describe("TableViewOptions"))


def test_each_option_of_another_class_is_listed() -> None:
    for name in client_api.CHOSEN_OF:
        rows = [each for each in client_api.describe(name) if each.startswith("| `")]
        assert len(rows) == len(client_api.get(name).__annotations__)
