"""Numbers that documents give are those of the code."""

from __future__ import annotations

import re

import pytest

from pulsar_py.common.loops.work import MAX_UNITS
from pulsar_py.proto.PulsarApi_pb2 import CommandProducer, CommandSubscribe
from pulsar_py.server.config import BrokerConfig
from pulsar_py.wire.large_commands import count_fields
from tests.document_texts import WRITTEN, defined_anywhere, text_of, value_of

KIB, MIB = 1024, 1024 * 1024

CLAIMS = (
    # Document, the words around the number (#), whose value it is, and how many of that it counts.
    ("ARCHITECTURE.md", "pending of all ledgers, up to # MiB", "BookieSettings.journal_group_bytes", MIB),
    ("ARCHITECTURE.md", "window of up to # mebibytes", "BookieSettings.fetch_ahead_bytes", MIB),
    ("ARCHITECTURE.md", "Entries of # KB or more are views", "LENT_BYTES", KIB),
    ("ARCHITECTURE.md", "without a task: up to # batches, then other work", "MAX_BATCHES_A_TURN", 1),
    ("ARCHITECTURE.md", "everything, # batches are one", "BATCHES_TOGETHER", 1),
    ("ARCHITECTURE.md", "active cursor is less than a # entries behind", "ManagedLedgerConfig.cursor_backlogged_threshold_entries", 1),
    ("ARCHITECTURE.md", "appends waiting for a new ledger | # MiB a topic", "ManagedLedgerConfig.max_queued_bytes", MIB),
    ("ARCHITECTURE.md", "output of one connection | # MiB high mark", "ConnectionSettings.output_high_water_bytes", MIB),
    ("ARCHITECTURE.md", "high mark, # MiB low mark", "ConnectionSettings.output_low_water_bytes", MIB),
    ("ARCHITECTURE.md", "requests of one connection under way | # |", "MAX_REQUESTS_UNDER_WAY", 1),
    ("ARCHITECTURE.md", "`maxPendingPublishRequestsPerConnection`, # |", "ConnectionSettings.max_pending_publishes_per_connection", 1),
    ("ARCHITECTURE.md", "of the same kind, a # ids each", "MAX_IDS_A_TURN", 1),
    ("ARCHITECTURE.md", "in JSON has at most # values", "_MAX_VALUES", 1),
    ("ARCHITECTURE.md", "An ack set has at most # words", "MAX_WORDS", 1),
    ("ARCHITECTURE.md", "batches of # messages", "_MAX_BITS", 1),
    ("ARCHITECTURE.md", "closed cleanly with at most # ranges", "ManagedLedgerConfig.max_unacked_ranges_to_persist_in_metadata", 1),
    ("ARCHITECTURE.md", "the same, with more than # ranges", "ManagedLedgerConfig.max_ranges_in_cursor_entry", 1),
    ("ARCHITECTURE.md", "`pulsar-disk`, a pool of # |", "POOL_THREADS_COUNT", 1),
    ("ARCHITECTURE.md", "appends fail at once for # s", "ManagedLedgerConfig.creation_failure_backoff_seconds", 1),
    ("ARCHITECTURE.md", "for 10 s (# s on a full disk)", "ManagedLedgerConfig.unavailable_backoff_seconds", 1),
    ("ARCHITECTURE.md", "a pause of # s, doubling", "DispatchSettings.read_failure_backoff_initial_millis", 1000),
    ("ARCHITECTURE.md", "doubling up to # s", "DispatchSettings.read_failure_backoff_max_millis", 1000),
    ("CHANGELOG.md", "JSON nested deeper than #", "MAX_JSON_DEPTH", 1),
    ("CHANGELOG.md", "JSON bodies beyond # KiB", "MAX_JSON_BODY_BYTES", KIB),
    ("CHANGELOG.md", "at most # fields, as they stand on the wire", "MAX_UNITS", 1),
    ("CHANGELOG.md", "ack sets of more than # words", "MAX_WORDS", 1),
    ("CHANGELOG.md", "acknowledgements with more than # properties", "MAX_ACK_PROPERTIES", 1),
    ("CHANGELOG.md", "A topic has at most # partitions", "server.MAX_PARTITIONS", 1),
    ("docs/FORMATS.md", "`journal/<id>`, reserved ahead (# MiB)", "BookieSettings.journal_file_bytes", MIB),
    ("docs/FORMATS.md", "written once from its start, up to # MiB", "BookieSettings.entry_log_bytes", MIB),
    ("docs/FORMATS.md", "A run is up to # KiB", "BookieSettings.run_bytes", KIB),
    ("docs/FORMATS.md", "pages of up to # bytes", "PAGE_BYTES", 1),
    ("docs/FORMATS.md", "With more than # ranges and batches together", "ManagedLedgerConfig.max_ranges_in_cursor_entry", 1),
    ("docs/FORMATS.md", "and the lowest # ranges or so", "MARKER_RANGES", 1),
    ("docs/SECURITY.md", "an unfinished one is ended after # s", "HANDSHAKE_SECONDS", 1),
    ("docs/SECURITY.md", "before CONNECTED frames have at most # KiB", "MAX_STRANGER_FRAME_BYTES", KIB),
    ("docs/SECURITY.md", "all bodies of HTTP together at most # MiB", "HttpLimits.all_bodies_bytes", MIB),
    ("docs/SECURITY.md", "beyond which only those up to # KiB are taken", "_SMALL_BODY_BYTES", KIB),
    ("docs/SECURITY.md", "At most # lines a second of changes", "LINES_A_SECOND", 1),
    ("docs/SECURITY.md", "the broker's for # days", "CERTIFICATE_DAYS", 1),
    ("docs/CLUSTER.md", "as their clients ask for them, # at a time", "LOADS_AT_ONCE", 1),
    ("docs/CLUSTER.md", "in the last minute, beyond # topics", "QUICK_TOPICS", 1),
    ("docs/client/GUIDE.md", "its address is tried at least every # s", "OUTAGE_BACKOFF_SECONDS", 1),
    ("docs/client/GUIDE.md", "With `retry_enable` and no policy the limit is #", "DEFAULT_MAX_RECONSUME_TIMES", 1),
    ("docs/client/GUIDE.md", "stands still in such a call for # s", "LIMIT_SECONDS", 1),
    ("docs/client/SERVICE.md", "`ClientTimeoutError` | after # s | `send_timeout_millis`", "ProducerConfig.send_timeout_millis", 1000),
    ("docs/client/SERVICE.md", "calls that open or ask fail | after # s", "ClientConfig.operation_timeout_seconds", 1),
)  # fmt: skip
"""Numbers of the prose; those that stand right behind a name in backticks are found without."""

DEFAULT_CLAIMS = (
    # The same for defaults of settings: document, words, setting, unit.
    ("docs/CLUSTER.md", "how long a dead broker's topics wait for the next broker; # s", "metadataStoreSessionTimeoutMillis", 1000),
    ("docs/CLUSTER.md", "whose usage is # % above the mean of all", "loadBalancerBrokerThresholdShedderPercentage", 1),
    ("docs/CLUSTER.md", "with a resource above # %", "loadBalancerBrokerOverloadedThresholdPercentage", 1),
    ("docs/CLUSTER.md", "% or # topics gets nothing", "loadBalancerBrokerMaxTopics", 1),
    ("docs/CLUSTER.md", "above # topics, 1,000 producers", "loadBalancerNamespaceBundleMaxTopics", 1),
    ("docs/CLUSTER.md", "topics, # producers and consumers", "loadBalancerNamespaceBundleMaxSessions", 1),
    ("docs/CLUSTER.md", "consumers, # messages or", "loadBalancerNamespaceBundleMaxMsgRate", 1),
    ("docs/CLUSTER.md", "messages or # MiB a second", "loadBalancerNamespaceBundleMaxBandwidthMbytes", 1),
    ("docs/CLUSTER.md", "up to # bundles a namespace", "loadBalancerNamespaceMaximumBundles", 1),
    ("docs/CLUSTER.md", "moves nothing below # MiB a second", "loadBalancerBundleUnloadMinThroughputThreshold", 1),
)  # fmt: skip

WORDS = {"one": 1, "four": 4, "eight": 8, "thousand": 1000}
NUMBER = rf"(\d[\d,]*(?:\.\d+)?|{'|'.join(WORDS)})"

FACTORS = {"": 1.0, "s": 1.0, "ms": 0.001, "KiB": KIB, "MiB": MIB}
"""What follows a number, in the units of the constants: seconds and bytes."""


def number(text: str) -> float:
    return WORDS[text] if text in WORDS else float(text.replace(",", ""))


def one_line(text: str) -> str:
    return re.sub(r"\s+", " ", text)


@pytest.mark.parametrize(("document", "words", "name", "unit"), CLAIMS)
def test_numbers_of_the_prose_are_those_of_the_code(
    document: str, words: str, name: str, unit: int
) -> None:
    pattern = re.escape(words).replace(r"\#", NUMBER)
    found = re.findall(pattern, one_line(text_of(document)))
    assert found, f"{document} has no longer: {words}"
    assert {number(one) * unit for one in found} == {value_of(name)}


@pytest.mark.parametrize(("document", "words", "setting", "unit"), DEFAULT_CLAIMS)
def test_defaults_of_the_prose_are_those_of_the_settings(
    document: str, words: str, setting: str, unit: int
) -> None:
    pattern = re.escape(words).replace(r"\#", NUMBER)
    found = re.findall(pattern, one_line(text_of(document)))
    assert found, f"{document} has no longer: {words}"
    default = BrokerConfig.declared()[setting].default
    assert {number(one) * unit for one in found} == {default}


def test_a_command_takes_as_many_properties_and_hash_ranges_as_is_said() -> None:
    words = f"a command takes about {NUMBER} of them"
    (said,) = re.findall(words, one_line(text_of("CHANGELOG.md")))
    for factor, is_taken in ((1.0, True), (1.05, False)):
        count = int(number(said) * factor)
        producer = CommandProducer(topic="t", producer_id=1, request_id=1)
        subscribe = CommandSubscribe(topic="t", subscription="s", consumer_id=1, request_id=1)
        for _ in range(count):
            producer.metadata.add(key="k", value="v")
            subscribe.keySharedMeta.hashRanges.add(start=1, end=2)
        for command in (producer, subscribe):
            data = command.SerializePartialToString()
            fields_count = count_fields(command.DESCRIPTOR, data, 0, len(data), MAX_UNITS)
            assert (fields_count <= MAX_UNITS) is is_taken


def wrong_constants(text: str) -> list[str]:
    """Constants that stand before another number than their value: `NAME` (10,000)."""
    pattern = rf"`(_?[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)` \({NUMBER}(?: (KiB|MiB|ms|s)\b)?"
    return [
        constant
        for constant, given, unit in re.findall(pattern, one_line(text))
        if defined_anywhere(constant) and number(given) * FACTORS[unit] != value_of(constant)
    ]


def wrong_defaults(text: str) -> list[str]:
    """Settings that stand before another number than their default: `name` (1 s), `name`, 50."""
    declared = BrokerConfig.declared()
    pattern = rf"`([a-z]\w*[A-Z]\w*)`,? \(?{NUMBER}(?: (KiB|MiB|ms|s)\b)?(?:\)| by default| \|)"
    return [
        setting
        for setting, given, unit in re.findall(pattern, one_line(text))
        if setting in declared
        and number(given) * FACTORS[unit]
        != declared[setting].default * (unit_of(setting) if unit else 1)
    ]


def unit_of(setting: str) -> float:
    """In seconds or bytes, by the end of a setting's name."""
    ends = {"Millis": 0.001, "Ms": 0.001, "Seconds": 1, "Minutes": 60, "MB": MIB, "Mb": MIB}
    return next((ends[end] for end in ends if setting.endswith(end)), 1)


@pytest.mark.parametrize("name", WRITTEN)
def test_a_number_behind_a_constant_is_its_value(name: str) -> None:
    assert not wrong_constants(text_of(name))


@pytest.mark.parametrize("name", WRITTEN)
def test_a_number_behind_a_setting_is_its_default(name: str) -> None:
    assert not wrong_defaults(text_of(name))


def test_other_numbers_are_found() -> None:
    assert wrong_constants("no more than `MAX_UNITS` (9,000) of them") == ["MAX_UNITS"]
    assert not wrong_constants("no more than `MAX_UNITS` (10,000) of them")
    assert wrong_defaults("late by a `delayedDeliveryTickTimeMillis` (2 s)")
    assert not wrong_defaults("late by a `delayedDeliveryTickTimeMillis` (1 s)")


def test_figures_of_the_readme_are_the_newest_ones() -> None:
    rows = re.findall(
        r"^\| [^|]+ \| ([^|]*\d(?:k/s| ms)) \| ([^|]+) \|$", text_of("README.md"), re.MULTILINE
    )
    assert rows
    newest = text_of("docs/FIGURES.md")
    assert not [figure for row in rows for figure in row if f"| {figure} |" not in newest]
