"""Settings of the Java classes become arguments of our client."""

from __future__ import annotations

import pytest

from pulsar_py.client.brokers.client_config import ClientConfig
from pulsar_py.client.security.authentication import AuthenticationToken
from pulsar_py.client.shared.enums import CompressionType, HashingScheme
from pulsar_py.common.errors import ConfigurationError
from pulsar_py.spark.shared.client_settings import (
    CLIENT,
    PRODUCER,
    PRODUCER_WITHOUT_EFFECT,
    ReaderSettings,
    client_arguments,
    reader_settings,
    translate,
)

SAMPLES = {int: "5000000", float: "7", str: "x"}


def test_units_are_converted() -> None:
    arguments, authentication = client_arguments(
        {
            "operationtimeoutms": "1500",
            "initialbackoffintervalnanos": "20000000",
            "tlsallowinsecureconnection": "TRUE",
            "numiothreads": "8",
        }
    )
    assert arguments == {
        "operation_timeout_seconds": 1.5,
        "initial_backoff_interval_ms": 20,
        "tls_allow_insecure_connection": True,
    }
    assert authentication is None


def test_every_name_of_ours_is_an_option_of_the_client() -> None:
    fields = set(ClientConfig.__dataclass_fields__)
    assert {ours for ours, _ in CLIENT.values()} <= fields


def test_a_plugin_of_java_becomes_an_authentication() -> None:
    _, authentication = client_arguments(
        {
            "authpluginclassname": "org.apache.pulsar.client.impl.auth.AuthenticationToken",
            "authparams": "token:abc",
        }
    )
    assert isinstance(authentication, AuthenticationToken)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"operationtimeoutm": "5"}, "did you mean 'pulsar.client.operationTimeoutMs'"),
        ({"operationtimeoutms": "soon"}, "pulsar.client.operationTimeoutMs: 'soon'"),
        ({"tlsallowinsecureconnection": "1"}, "expected true or false"),
        ({"authparams": "token:x"}, "pulsar.client.authPluginClassName.* is not"),
    ],
)
def test_a_mistake_names_setting_and_value(settings: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        client_arguments(settings)


def test_readers_have_a_table_of_their_own() -> None:
    given = {"receiverqueuesize": "10", "readername": "me", "readcompacted": "true"}
    assert reader_settings(given | {"startmessageid": "x"}) == ReaderSettings(
        queue_messages=10, name="me", is_compacted=True
    )
    with pytest.raises(ConfigurationError, match=r"'pulsar\.reader\.readername1'.*readerName'"):
        reader_settings({"readername1": "me"})
    with pytest.raises(ConfigurationError, match="receiverQueueSize: '0': expected at least 1"):
        reader_settings({"receiverqueuesize": "0"})


def test_producers_have_a_table_of_their_own() -> None:
    assert translate("pulsar.producer.", {"sendtimeoutms": "0"}, PRODUCER) == {
        "send_timeout_millis": 0
    }


def test_producers_take_enumerations_by_name_and_micros() -> None:
    given = {
        "hashingscheme": "Murmur3_32Hash",
        "compressiontype": "zstd",
        "batchingmaxpublishdelaymicros": "2500",
        "blockifqueuefull": "true",
    }
    assert translate("pulsar.producer.", given, PRODUCER, PRODUCER_WITHOUT_EFFECT) == {
        "hashing_scheme": HashingScheme.Murmur3_32Hash,
        "compression_type": CompressionType.ZSTD,
        "batching_max_publish_delay_ms": 2.5,
    }
    with pytest.raises(
        ConfigurationError, match=r"compressionType: 'gzip': expected one of NONE, LZ4"
    ):
        translate("pulsar.producer.", {"compressiontype": "gzip"}, PRODUCER)
