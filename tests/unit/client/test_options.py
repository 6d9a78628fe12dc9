"""What type checkers know of the keyword arguments is what the configurations have."""

from __future__ import annotations

from dataclasses import fields

import pytest

from pulsar_py.client import options
from pulsar_py.client.brokers.client_config import ClientConfig
from pulsar_py.client.consuming.consumer_config import ConsumerConfig
from pulsar_py.client.producing.producer_config import ProducerConfig
from pulsar_py.client.reading.reader_config import ReaderConfig
from pulsar_py.common.errors import InvalidConfigurationError


def of_any_values(annotation: str) -> str:
    """An option's type as a configuration has it, which is not generic."""
    annotation = annotation.replace("Schema[T]", "Schema[Any]")
    return annotation.replace("Message[T]", "Message").replace("Reader[T]", "Reader")


PAIRS = [
    (options.ClientOptions, ClientConfig),
    (options.ProducerOptions, ProducerConfig),
    (options.ConsumerOptions, ConsumerConfig),
    (options.ReaderOptions, ReaderConfig),
]


@pytest.mark.parametrize(("typed", "config"), PAIRS)
def test_names_and_types_are_those_of_the_configuration(typed: type, config: type) -> None:
    ours = {
        name: of_any_values(each.__forward_arg__) for name, each in typed.__annotations__.items()
    }
    theirs = {each.name: each.type for each in fields(config)}
    if config is ClientConfig:
        del theirs["authentication"]
    if config is ConsumerConfig:
        for name in ("chunk_listener", "keeps_batches", "problem_listener"):
            del theirs[name]  # for parts of the library

    assert ours == theirs


def test_a_table_views_options_are_some_of_its_readers() -> None:
    ours = options.TableViewOptions.__annotations__

    assert ours.items() <= options.ReaderOptions.__annotations__.items()


@pytest.mark.parametrize(
    ("kind", "parameters"),
    [
        ("Producer", {"schema"}),
        ("Consumer", {"schema", "consumer_type"}),
        ("Reader", {"schema"}),
        ("TableView", {"schema"}),
    ],
)
def test_what_is_no_parameter_of_the_call_is_an_option(kind: str, parameters: set[str]) -> None:
    without = getattr(options, f"{kind}OptionsWithoutSchema").__annotations__
    whole = getattr(options, f"{kind}Options").__annotations__

    assert whole == without | {each: whole[each] for each in parameters}
    assert not without.keys() & parameters


def test_what_is_no_option_is_refused_with_the_nearest() -> None:
    options.check_names(["schema"], options.ConsumerOptions, "subscribe")
    with pytest.raises(
        InvalidConfigurationError,
        match=r"subscribe has no option reciever_queue_size, did you mean receiver_queue_size\?",
    ):
        options.check_names(["reciever_queue_size"], options.ConsumerOptions, "subscribe")
    with pytest.raises(InvalidConfigurationError, match=r"^Client has no option zzz$"):
        options.check_names(["zzz"], options.ClientOptions, "Client")
