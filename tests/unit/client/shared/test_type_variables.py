"""Classes take types at run time, too, where annotations are evaluated; nothing else is loaded."""

from __future__ import annotations

import subprocess
import sys

import pytest

import pulsar_py
from pulsar_py.client.options import ConsumerOptions

GENERIC = [
    pulsar_py.Producer,
    pulsar_py.PartitionedProducer,
    pulsar_py.Consumer,
    pulsar_py.MultiTopicsConsumer,
    pulsar_py.PatternConsumer,
    pulsar_py.AnyConsumer,
    pulsar_py.Reader,
    pulsar_py.Message,
    pulsar_py.TableView,
    pulsar_py.ProducerOptions,
    pulsar_py.ConsumerOptions,
    pulsar_py.ReaderOptions,
]


@pytest.mark.parametrize("generic", GENERIC, ids=str)
def test_a_class_takes_a_type(generic: type) -> None:
    assert "int" in str(generic[int])


def test_any_consumer_hands_its_type_on() -> None:
    assert pulsar_py.AnyConsumer[int] == (
        pulsar_py.Consumer[int] | pulsar_py.MultiTopicsConsumer[int]
    )


def test_options_are_dicts_with_a_type() -> None:
    options: ConsumerOptions = ConsumerOptions[int](receiver_queue_size=3)

    assert options == {"receiver_queue_size": 3}


def test_typing_extensions_are_for_checkers_alone() -> None:
    code = (
        "import sys; sys.modules['typing_extensions'] = None  # as if it were not installed\n"
        "import pulsar_py as p; p.Client, p.Producer, p.Consumer, p.Reader, p.TableView"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
