"""Options of producers: defaults, bounds, what excludes what."""

from __future__ import annotations

import inspect
from typing import Any

import pulsar
import pytest

from pulsar_py.client.producing.producer_config import ProducerConfig
from pulsar_py.client.security.crypto_keys import CryptoKeyReader
from pulsar_py.client.shared.enums import CompressionType, HashingScheme, PartitionsRoutingMode
from pulsar_py.common.errors import InvalidConfigurationError


def test_names_and_defaults_are_the_official_clients() -> None:
    parameters = inspect.signature(pulsar.Client.create_producer).parameters
    ours = ProducerConfig()
    for name, parameter in parameters.items():
        if name in {"self", "topic", "schema", "properties"}:
            continue
        theirs = parameter.default
        mine = getattr(ours, name)
        assert (int(mine) if hasattr(theirs, "value") else mine) == (
            theirs.value if hasattr(theirs, "value") else theirs
        ), name


def test_the_official_clients_enumerations_are_understood() -> None:
    config = ProducerConfig.of(
        {
            "compression_type": pulsar.CompressionType.ZSTD,
            "message_routing_mode": pulsar.PartitionsRoutingMode.UseSinglePartition,
        }
    )
    assert config.compression_type is CompressionType.ZSTD
    assert config.message_routing_mode is PartitionsRoutingMode.UseSinglePartition


def test_none_is_the_default() -> None:
    assert ProducerConfig.of({"hashing_scheme": None}).hashing_scheme is HashingScheme.BoostHash
    assert ProducerConfig.of({"producer_name": ""}).producer_name is None


def test_an_unknown_option_proposes_the_nearest() -> None:
    with pytest.raises(InvalidConfigurationError, match="did you mean batching_enabled"):
        ProducerConfig.of({"batching_enable": True})


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"batching_max_messages": 0}, "batching_max_messages=0"),
        ({"send_timeout_millis": -1}, "send_timeout_millis=-1"),
        ({"max_pending_messages": "5"}, "max_pending_messages='5'"),
        ({"max_pending_messages": True}, "max_pending_messages=True"),
        ({"chunk_max_message_size": 0}, "chunk_max_message_size=0"),
        ({"compression_type": 1}, "compression_type=1: expected one of .*LZ4"),
        ({"compression_type": "LZ4"}, "compression_type='LZ4'"),
        ({"batching_enabled": True, "chunking_enabled": True}, "chunking_enabled"),
        ({"encryption_key": "k"}, "crypto_key_reader"),
        ({"crypto_key_reader": CryptoKeyReader("a", "b")}, "encryption_key"),
        ({"message_routing_mode": PartitionsRoutingMode.CustomPartition}, "message_router"),
        ({"initial_sequence_id": -2}, "initial_sequence_id=-2"),
        ({"properties": {"a": 1}}, "properties"),
    ],
)
def test_what_is_out_of_bounds_is_named(options: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidConfigurationError, match=named):
        ProducerConfig.of(options)


def test_one_encryption_key_or_several() -> None:
    reader = CryptoKeyReader("a", "b")
    assert ProducerConfig().encryption_keys == ()
    assert ProducerConfig(encryption_key="k", crypto_key_reader=reader).encryption_keys == ("k",)
    assert ProducerConfig(encryption_key=["k", "l"], crypto_key_reader=reader).encryption_keys == (
        "k",
        "l",
    )
