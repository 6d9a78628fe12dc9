from __future__ import annotations

import re
from typing import Any

import pytest

import pulsar_py
from pulsar_py.client.messages.message import ReceivedMessageId
from pulsar_py.client.shared import absent_names
from pulsar_py.common.errors import InvalidConfigurationError

pulsar = pytest.importorskip("pulsar")

PAIRS = [
    (pulsar.Client, pulsar_py.Client),
    (pulsar.Producer, pulsar_py.Producer),
    (pulsar.Consumer, pulsar_py.Consumer),
    (pulsar.Consumer, pulsar_py.MultiTopicsConsumer),
    (pulsar.Consumer, pulsar_py.PatternConsumer),
    (pulsar.Reader, pulsar_py.Reader),
    (pulsar.Message, pulsar_py.Message),
    (pulsar.MessageId, ReceivedMessageId),
    (pulsar.TableView, pulsar_py.TableView),
]
IMPORTED = {"Callable", "List", "Optional", "Tuple", "Union", "logging", "re", "timedelta"}


def names(owner: Any) -> list[str]:
    return [each for each in dir(owner) if not each.startswith("_")]


@pytest.mark.parametrize(("official", "ours"), PAIRS)
def test_each_method_of_the_official_client_is_here_or_says_what_to_use(
    official: type, ours: type
) -> None:
    for name in names(official):
        if name in dir(ours) and not isinstance(vars(ours).get(name), absent_names._Absent):
            continue
        with pytest.raises(AttributeError, match=rf"^{ours.__name__} has no {name}: \w"):
            getattr(ours, name)


def test_each_name_of_the_official_package_is_here_or_says_what_to_use() -> None:
    for name in set(names(pulsar)) - set(dir(pulsar_py)) - IMPORTED - {"schema"}:
        with pytest.raises(AttributeError, match=rf"no attribute '{name}': \w"):
            getattr(pulsar_py, name)


def test_proposed_names_are_there() -> None:
    for name in absent_names._PACKAGE.values():
        assert hasattr(pulsar_py, name)
    tables = {
        "client": (absent_names.CLIENT, pulsar_py.Client),
        "producer": (absent_names.PRODUCER, pulsar_py.Producer),
        "consumer": (absent_names.CONSUMER, pulsar_py.Consumer),
        "reader": (absent_names.READER, pulsar_py.Reader),
        "message_id": (absent_names.MESSAGE_ID, pulsar_py.MessageId),
    }
    for variable, (table, owner) in tables.items():
        for words in table.values():
            for method in re.findall(rf"{variable}\.(\w+)", words):
                assert hasattr(owner, method), method


def test_the_home_of_schemas_is_named() -> None:
    with pytest.raises(AttributeError, match=r"use `from pulsar_py\.schema import AvroSchema`"):
        _ = pulsar_py.AvroSchema


def test_instances_say_so_too_and_do_not_list_them() -> None:
    client = pulsar_py.Client("pulsar://nowhere")
    with pytest.raises(AttributeError, match="transactions are not there yet"):
        client.new_transaction  # type: ignore[attr-defined] # noqa: B018 - that it is missing is the point
    assert not hasattr(client, "new_transaction")
    assert "new_transaction" not in dir(client)
    assert "subscribe" in dir(client)


@pytest.mark.parametrize(
    "kind",
    [
        pulsar_py.Client,
        pulsar_py.Producer,
        pulsar_py.Consumer,
        pulsar_py.MultiTopicsConsumer,
        pulsar_py.Reader,
        pulsar_py.TableView,
    ],
)
def test_with_says_that_it_takes_async_with(kind: type) -> None:
    class Opened(kind):  # type: ignore[misc, valid-type] # any of them
        def __init__(self) -> None:
            pass

    Opened.__abstractmethods__ = frozenset()
    with (
        pytest.raises(TypeError, match=r"`with` on a Opened: it is asynchronous, use `async with`"),
        Opened(),
    ):
        pass


@pytest.mark.parametrize("option", absent_names.ABSENT_OPTIONS)
def test_options_without_use_here_say_why(option: str) -> None:
    with pytest.raises(InvalidConfigurationError, match=rf"Client has no option {option}: \w"):
        pulsar_py.Client("pulsar://nowhere", **{option: 1})
