"""The reference of the connector's options is fresh, and says what the code takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from enum import Enum
from typing import Any

import pyarrow as pa
import pytest

from docs import spark_options
from docs.spark_options import BATCH, READS, WRITES, Option
from pulsar_py.client.brokers.client_config import ClientConfig
from pulsar_py.common.errors import ConfigurationError
from pulsar_py.schema import KeyValueEncodingType, SchemaInfo, SchemaType
from pulsar_py.spark.shared import client_settings, options
from pulsar_py.spark.shared.options import (
    ALIASES,
    CLIENT_PREFIXES,
    WITHOUT_EFFECT,
    ClientOptions,
    DeliveryGuarantee,
    ReadOptions,
    UndecodableMode,
    ValueMode,
    WriteOptions,
)
from pulsar_py.spark.values.metadata_columns import COLUMNS
from pulsar_py.spark.writing import outgoing_rows
from pulsar_py.spark.writing.outgoing_rows import SinkColumns
from pulsar_py.spark.writing.partition_sender import ProducerSettings
from tests.package_source import ROOT

CLUSTER = {"service.url": "pulsar://h:6650", "admin.url": "http://h:8080", "topic": "t"}


def names_asked_for(
    monkeypatch: pytest.MonkeyPatch, given: Mapping[str, str], *, is_read: bool
) -> set[str]:
    """The options that parsing looks at."""
    asked: set[str] = set()
    original = options._Given.text

    def text(self: Any, name: str) -> str | None:  # Any: the class is private
        asked.add(name)
        return original(self, name)

    with monkeypatch.context() as patch:
        patch.setattr(options._Given, "text", text)
        if is_read:
            ReadOptions.parse(given, is_streaming=False)
        else:
            WriteOptions.parse(given)
    return asked


def test_the_reference_is_not_stale() -> None:
    written = (ROOT / spark_options.PATH).read_text(encoding="utf-8")
    assert written == spark_options.render(), "run `make docs`"


def test_each_option_has_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    for table, is_read in ((READS, True), (WRITES, False)):
        asked = names_asked_for(monkeypatch, CLUSTER, is_read=is_read)
        assert sorted(each.name for each in table) == sorted(asked)
    assert {name.lower() for name in spark_options.ALSO_TAKEN} == set(WITHOUT_EFFECT)
    assert set(spark_options.KAFKAS) == set(ALIASES)
    assert set(ALIASES.values()) <= {each.name for each in READS}


@pytest.mark.parametrize("option", [each for each in READS if each.default is not None])
def test_defaults_of_reads_are_those_of_the_code(option: Option) -> None:
    given = CLUSTER | {option.name: option.default or ""}
    for is_streaming in (False, True):
        try:
            found = ReadOptions.parse(given, is_streaming=is_streaming)
        except ConfigurationError:
            assert is_streaming
            assert option.where == BATCH
        else:
            assert found == ReadOptions.parse(CLUSTER, is_streaming=is_streaming)


@pytest.mark.parametrize("option", [each for each in WRITES if each.default is not None])
def test_defaults_of_writes_are_those_of_the_code(option: Option) -> None:
    given = CLUSTER | {option.name: option.default or ""}
    assert WriteOptions.parse(given) == WriteOptions.parse(CLUSTER)


def values_of(kind: type[Enum]) -> list[str]:
    return [str(each.value) for each in kind]


def test_values_are_those_of_the_code() -> None:
    values = {name: list(each) for name, each in spark_options.VALUES.items()}
    assert values["valueMode"] == values_of(ValueMode)
    assert values["undecodable"] == values_of(UndecodableMode)
    assert values["deliveryGuarantee"] == values_of(DeliveryGuarantee)
    assert set(values["keyValueEncoding"]) == {each.name.lower() for each in KeyValueEncodingType}
    for name, each in values.items():
        for value in each:
            if name in {option.name for option in WRITES}:
                WriteOptions.parse(CLUSTER | {name: value})
            else:
                ReadOptions.parse(CLUSTER | {name: value}, is_streaming=False)


def test_each_metadata_column_has_one_line() -> None:
    assert list(spark_options.METADATA) == list(COLUMNS)
    assert list(COLUMNS) == list(options.METADATA_COLUMNS + options.EXTRA_COLUMNS)


@pytest.mark.parametrize("name", spark_options.WRITTEN)
def test_columns_that_are_metadata_have_types(name: str) -> None:
    schema = pa.schema([(name, pa.list_(pa.int8())), ("value", pa.string())])
    with pytest.raises(ConfigurationError, match=f"column {name}: "):
        SinkColumns.of(schema, WriteOptions.parse({"service.url": "pulsar://h:6650"}))
    assert len(spark_options.WRITTEN) == len(outgoing_rows._TYPES)


def test_settings_of_clients_are_those_of_the_code() -> None:
    assert {*spark_options.PREFIXES, "pulsar.admin."} == set(CLIENT_PREFIXES)
    own = ("authPluginClassName", "authParams")
    assert list(spark_options.CLIENT_SETTINGS) == [*own, *client_settings.CLIENT]
    assert list(spark_options.READER_SETTINGS) == list(client_settings.READER)
    assert list(spark_options.PRODUCER_SETTINGS) == list(client_settings.PRODUCER)


def test_defaults_of_clients_are_those_of_the_code() -> None:
    given = defaults_of(spark_options.CLIENT_SETTINGS)
    arguments, _ = client_settings.client_arguments(given)
    defaults = {each.name: each.default for each in fields(ClientConfig)}
    assert arguments == {name: defaults[name] for name in arguments}
    unset = {
        ours for name, (ours, _) in client_settings.CLIENT.items() if name.lower() not in given
    }
    assert [defaults[name] for name in unset] == [None] * len(unset)


def test_defaults_of_readers_and_producers_are_those_of_the_code() -> None:
    given = defaults_of(spark_options.READER_SETTINGS)
    assert client_settings.reader_settings(given) == client_settings.reader_settings({})
    given = defaults_of(spark_options.PRODUCER_SETTINGS)
    schema = SchemaInfo(SchemaType.BYTES)
    found, plain = (
        ProducerSettings.of(ClientOptions("", None, producer=each), schema, None)
        for each in (given, {})
    )
    shown = ("hashing_scheme", "cut_messages", "cut_bytes", "turn_rows", "timeout_seconds")
    assert [getattr(found, name) for name in shown] == [getattr(plain, name) for name in shown]
    assert {name: found.arguments[name] for name in plain.arguments if name != "schema"} == {
        name: value for name, value in plain.arguments.items() if name != "schema"
    }


def defaults_of(settings: Mapping[str, Sequence[str | None]]) -> dict[str, str]:
    """As options hand them over."""
    return {name.lower(): each[1] for name, each in settings.items() if each[1] is not None}
