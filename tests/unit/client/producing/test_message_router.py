"""Routing: keys by hash, the others by mode, batches kept together."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest

from pulsar_py.client.producing.message_builder import OutgoingMessage
from pulsar_py.client.producing.message_router import (
    CustomRouter,
    RoundRobinRouter,
    SinglePartitionRouter,
    key_partition,
    message_router,
)
from pulsar_py.client.producing.producer_config import ProducerConfig
from pulsar_py.client.shared.enums import HashingScheme, PartitionsRoutingMode
from pulsar_py.common.errors import InvalidConfigurationError

HASHES = json.loads((Path(__file__).parents[3] / "recordings" / "vectors.json").read_text())[
    "tables"
]["hashes"]

JAVA = HashingScheme.JavaStringHash


@pytest.mark.parametrize(
    "row", [each for each in HASHES if "routing_java_mod_10" in each], ids=lambda row: row["key"]
)
def test_keys_go_where_the_recorded_hashes_say(row: dict[str, object]) -> None:
    key = str(row["key"])
    assert key_partition(JAVA, key, 10) == row["routing_java_mod_10"]
    assert key_partition(HashingScheme.Murmur3_32Hash, key, 10) == row["routing_murmur_mod_10"]


@pytest.mark.parametrize(
    ("key", "partition"),
    [("a", 639), ("ab", 591), ("abcd", 925), ("abcdefgh", 932), ("hello world 1234567890", 110)],
)
def test_keys_go_where_the_official_python_client_sends_them(key: str, partition: int) -> None:
    """Seen with 997 partitions."""
    assert key_partition(HashingScheme.BoostHash, key, 997) == partition


def test_without_batching_each_message_is_a_turn() -> None:
    router = RoundRobinRouter(4, JAVA)
    assert [router.choose_plain(1, 0.0, 3) for _ in range(5)] == [1, 2, 0, 1, 2]


def test_with_batching_a_full_batch_ends_the_turn() -> None:
    router = RoundRobinRouter(0, JAVA, messages_limit=3, bytes_limit=100, turn_seconds=1)
    assert [router.choose_plain(1, 0.0, 2) for _ in range(7)] == [0, 0, 0, 1, 1, 1, 0]


def test_the_message_that_passes_the_bytes_begins_the_next_turn() -> None:
    router = RoundRobinRouter(0, JAVA, messages_limit=100, bytes_limit=10, turn_seconds=1)
    assert [router.choose_plain(size, 0.0, 3) for size in (6, 4, 1, 20, 1)] == [0, 0, 1, 2, 0]


def test_time_ends_the_turn() -> None:
    router = RoundRobinRouter(0, JAVA, messages_limit=100, bytes_limit=100, turn_seconds=0.5)
    assert [router.choose_plain(1, now, 2) for now in (5.0, 5.25, 5.5, 5.75)] == [0, 0, 1, 1]


def test_a_key_takes_no_part_in_the_turns() -> None:
    router = RoundRobinRouter(0, JAVA)
    assert router.choose_plain(1, 0.0, 10) == 0
    assert router.choose(OutgoingMessage(b"", partition_key="a"), 0.0, 10) == 7
    assert router.choose(OutgoingMessage(b""), 0.0, 10) == 1


def test_a_single_partition_takes_all_without_a_key() -> None:
    router = SinglePartitionRouter(12, JAVA)
    assert router.first_partition(10) == 2
    assert router.choose(OutgoingMessage(b""), 0.0, 10) == 2
    assert router.choose(OutgoingMessage(b"", partition_key="a"), 0.0, 10) == 7


def test_a_custom_router_sees_message_and_partitions() -> None:
    router = CustomRouter(lambda message, count: len(message.partition_key()) % count)
    assert router.choose(OutgoingMessage(b"", partition_key="four"), 0.0, 3) == 1


@pytest.mark.parametrize("answer", [-1, 3, "0", None])
def test_a_custom_router_must_name_a_partition(answer: object) -> None:
    router = CustomRouter(lambda message, count: answer)  # type: ignore[arg-type,return-value]
    with pytest.raises(InvalidConfigurationError, match="message_router"):
        router.choose(OutgoingMessage(b""), 0.0, 3)


def test_the_options_choose_the_router() -> None:
    def chosen(**options: object) -> object:
        return message_router(ProducerConfig.of(options), Random(1))

    assert isinstance(chosen(), RoundRobinRouter)
    assert isinstance(
        chosen(message_routing_mode=PartitionsRoutingMode.UseSinglePartition), SinglePartitionRouter
    )
    assert isinstance(chosen(message_router=lambda message, count: 0), CustomRouter)


def test_round_robin_stays_for_ten_publish_delays() -> None:
    config = ProducerConfig.of({"batching_enabled": True, "batching_max_publish_delay_ms": 20})
    router = message_router(config, Random(1))
    first = router.choose_plain(1, 0.0, 7)
    assert router.choose_plain(1, 0.19, 7) == first
    assert router.choose_plain(1, 0.2, 7) == (first + 1) % 7
