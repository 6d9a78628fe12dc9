"""Options as Spark hands them over: lower-cased names, texts."""

from __future__ import annotations

import pytest

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.spark.shared.offsets import Edge
from pulsar_py.spark.shared.options import (
    EXTRA_COLUMNS,
    METADATA_COLUMNS,
    DeliveryGuarantee,
    ReadOptions,
    Topics,
    UndecodableMode,
    ValueMode,
    WriteOptions,
)

URL = "pulsar://localhost:6650"


def read(*, is_streaming: bool = False, **options: str) -> ReadOptions:
    given = {"service.url": URL} | {name.lower(): value for name, value in options.items()}
    if not {"topic", "topics", "topicspattern", "subscribe", "subscribepattern"} & set(given):
        given["topic"] = "t"
    return ReadOptions.parse(given, is_streaming=is_streaming)


def write(**options: str) -> WriteOptions:
    given = {"service.url": URL} | {name.lower(): value for name, value in options.items()}
    return WriteOptions.parse(given)


def test_defaults_are_those_of_the_jvm_connector() -> None:
    batch, stream = read(), read(is_streaming=True)
    assert (batch.starting.default, stream.starting.default) == (Edge.EARLIEST, Edge.LATEST)
    assert batch.ending is not None
    assert batch.ending.default is Edge.LATEST
    assert stream.ending is None
    assert batch.columns == METADATA_COLUMNS
    assert batch.fail_on_data_loss
    assert batch.poll_timeout_millis == 120_000
    assert batch.max_bytes_per_partition == 128 << 20


def test_kafka_s_names_are_aliases() -> None:
    options = ReadOptions.parse(
        {
            "service.url": URL,
            "admin.url": "http://localhost:8080",
            "subscribe": "a, b",
            "maxoffsetspertrigger": "7",
            "startingtimestamp": "5",
        },
        is_streaming=True,
    )
    assert options.topics == Topics(names=("a", "b"))
    assert options.max_entries_per_trigger == 7
    assert options.starting_time_millis == {"": 5}
    assert read(subscribePattern="t-.*", includeHeaders="true").topics == Topics(pattern="t-.*")


def test_settings_of_clients_are_kept_by_kind_and_serve_admin_too() -> None:
    options = ReadOptions.parse(
        {
            "service.url": URL,
            "topic": "t",
            "pulsar.client.authparams": "token:x",
            "pulsar.reader.receiverqueuesize": "5",
        },
        is_streaming=False,
    )
    assert options.client.client == {"authparams": "token:x"}
    assert options.client.admin == {"authparams": "token:x"}
    assert options.client.reader == {"receiverqueuesize": "5"}


def test_columns_keep_the_order_that_was_asked_for() -> None:
    assert read(columns="__entryid, __key").columns == ("__entryId", "__key")
    assert read(columns="all").columns == METADATA_COLUMNS + EXTRA_COLUMNS
    assert read(columns="").columns == ()


def test_different_schemas_mean_raw_values() -> None:
    assert read(allowDifferentTopicSchemas="true").value_mode is ValueMode.RAW
    assert read(valueMode="RAW").value_mode is ValueMode.RAW
    assert read(undecodable="column").undecodable is UndecodableMode.COLUMN


def test_a_misspelt_topic_is_pointed_at() -> None:
    with pytest.raises(ConfigurationError, match="'topci' is not an option, did you mean 'topic'"):
        ReadOptions.parse({"service.url": "pulsar://h:6650", "topci": "t"}, is_streaming=False)


def test_writing_to_one_topic_exactly_once() -> None:
    options = write(topic="t", deliveryGuarantee="exactly-once", sequenceOrder="columns:a, b")
    assert options.guarantee is DeliveryGuarantee.EXACTLY_ONCE
    assert options.sequence_order == ("a", "b")
    assert (options.key_column, options.ordering_key_column) == ("__key", "__orderingKey")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"topics": "a", "topic": "b"}, "exactly one of .* found topic and topics"),
        ({"topic": "a,b"}, "topic: 'a,b' has a comma"),
        ({"topics": " , "}, "topics: ',' names no topic"),
        ({"startingOffsets": "latest"}, "startingOffsets: 'latest' would make .* for streams"),
        ({"endingOffsets": "earliest"}, "endingOffsets: 'earliest'"),
        ({"startingTime": "5", "startingOffsets": "earliest"}, "startingTime and startingOffsets"),
        ({"startingOffsets": '{"a://b c": "0:5"}'}, "startingOffsets: .*a://b c"),
        ({"endingTime": '{"a://b c": 5}'}, "endingTime: .*a://b c"),
        ({"startingTime": "99999999999999999999"}, "startingTime: '99999999999999999999' is neith"),
        ({"columns": "__key, __KEY"}, "columns: '__KEY' is named twice"),
        ({"admin.url": "localhost:8080"}, "^admin.url: 'localhost:8080': expected one of"),
        (
            {"admin.url": "pulsar://a:1"},
            "^admin.url: 'pulsar://a:1' does not begin with http:// or",
        ),
        (
            {"startingTime": "soon"},
            "startingTime: 'soon' is neither a time in milliseconds .* 2026-01-31T10:00Z",
        ),
        ({"maxBytesPerTrigger": "5"}, "maxBytesPerTrigger needs admin.url"),
        ({"maxOffsetsPerTrigger": "5"}, "maxEntriesPerTrigger needs admin.url"),
        ({"maxEntriesPerTrigger": "-1"}, "maxEntriesPerTrigger: -1 is out of bounds: at least 0"),
        ({"minPartitions": "many"}, "minPartitions: 'many' is not an integer"),
        ({"failOnDataLoss": "perhaps"}, "failOnDataLoss: 'perhaps' is neither true nor false"),
        ({"valueMode": "rw"}, "valueMode: 'rw', expected one of auto, raw"),
        ({"columns": "__entryI"}, "columns: '__entryI' .* did you mean '__entryId'"),
        ({"startingOfsets": "earliest"}, "'startingofsets', did you mean 'startingOffsets'"),
        ({"subscribe": "a", "topics": "b"}, "topics is given twice: 'a' and 'b'"),
        ({"shortCircuitSocketPath": "data/x"}, "shortCircuitSocketPath: 'data/x' is not an abs"),
        (
            {"shortCircuitSocketPath": "/" + "ä" * 54},
            "shortCircuitSocketPath: '/ä*' has 109 bytes, a socket's path has at most 107",
        ),
    ],
)
def test_a_bad_read_names_the_option_and_the_value(options: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        read(**options)


def test_an_empty_path_of_a_socket_is_none() -> None:
    assert read(shortCircuitSocketPath="").short_circuit_path is None
    assert read(shortCircuitSocketPath="/run/lent").short_circuit_path == "/run/lent"


def test_settings_of_readers_hold_unless_options_say_otherwise() -> None:
    settings = {
        "pulsar.reader.subscriptionRolePrefix": "role",
        "pulsar.reader.readCompacted": "true",
        "pulsar.reader.receiverQueueSize": "7",
    }
    options = read(**settings)
    assert (options.subscription_prefix, options.is_compacted) == ("role", True)
    assert options.reader.queue_messages == 7
    options = read(**settings, subscriptionPrefix="mine", readCompacted="false")
    assert (options.subscription_prefix, options.is_compacted) == ("mine", False)
    with pytest.raises(ConfigurationError, match=r"unknown option 'pulsar\.reader\.bogus'"):
        read(**{"pulsar.reader.bogus": "3"})


def test_a_stream_has_no_end() -> None:
    with pytest.raises(ConfigurationError, match="endingOffsets: 'latest': a stream has no end"):
        read(is_streaming=True, endingOffsets="latest")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"topic": "a,b"}, "topic: 'a,b' has a comma, and a write has one topic"),
        ({"deliveryGuarantee": "exactly-once"}, "'exactly-once' needs the option topic"),
        ({"deliveryGuarantee": "once"}, "'once', expected one of at-least-once, exactly-once"),
        ({"sequenceOrder": "columns:"}, "sequenceOrder: 'columns:', expected"),
        ({"keyValueEncoding": "x"}, "keyValueEncoding: 'x', expected inline or separated"),
        ({"topic": "t", "startingOffsets": "earliest"}, "unknown option 'startingoffsets'$"),
        ({"topic": "t", "subscribePatter": "a"}, "unknown option 'subscribepatter'$"),
    ],
)
def test_a_bad_write_names_the_option_and_the_value(options: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        write(**options)


def test_without_a_service_url_nothing_is_tried() -> None:
    with pytest.raises(ConfigurationError, match=r"service\.url is missing"):
        ReadOptions.parse({"topic": "t"}, is_streaming=False)


def test_settings_of_clients_are_not_shown() -> None:
    client = write(topic="t", **{"pulsar.client.authParams": "token:abcd"}).client
    assert client.client == {"authparams": "token:abcd"}
    assert "abcd" not in repr(client)


@pytest.mark.parametrize(
    ("text", "millis"),
    [
        ("1769853600000", 1_769_853_600_000),
        ("2026-01-31T10:00Z", 1_769_853_600_000),
        ("2026-01-31T11:00+01:00", 1_769_853_600_000),
        ("2026-01-31 10:00:00", 1_769_853_600_000),
        ("2026-01-31", 1_769_817_600_000),
        (' "2026-01-31" ', 1_769_817_600_000),
    ],
)
@pytest.mark.parametrize("name", ["startingTime", "endingTime"])
def test_times_may_be_dates(name: str, text: str, millis: int) -> None:
    given = {"service.url": "pulsar://a:1", "topic": "t", name: text}
    options = ReadOptions.parse(given, is_streaming=False)
    times = {
        "startingTime": options.starting_time_millis,
        "endingTime": options.ending_time_millis,
    }
    assert times[name] == {"": millis}


def test_dates_may_be_given_by_topic() -> None:
    given = {
        "service.url": "pulsar://a:1",
        "topics": "a,b",
        "startingTime": '{"a": "2026-01-31", "b": 5}',
    }
    options = ReadOptions.parse(given, is_streaming=False)
    assert options.starting_time_millis == {"a": 1_769_817_600_000, "b": 5}


def test_a_missing_topic_is_either_an_error_or_waited_for() -> None:
    assert not read().fails_on_missing_topic
    assert read(failOnMissingTopic="true").fails_on_missing_topic
    with pytest.raises(ConfigurationError, match="contradict each other"):
        read(failOnMissingTopic="true", waitingForNonExistedTopic="true")
