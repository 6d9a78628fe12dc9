"""Hash functions against the recorded tables."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pulsar_py.common import hashing

TABLES: dict[str, Any] = json.loads(
    (Path(__file__).parents[2] / "recordings" / "vectors.json").read_text()
)["tables"]


def test_the_package_of_crc32c_is_not_imported_and_finds_the_same_function() -> None:
    code = (
        "import sys\n"
        "from pulsar_py.common.hashing import crc32c\n"
        "assert not {'crc32c', 'importlib.metadata', 'argparse'} & set(sys.modules)\n"
        "import crc32c as package\n"
        "assert package.crc32c is crc32c\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    later = "import crc32c; from pulsar_py.common import hashing; assert hashing.crc32c is crc32c.crc32c"
    subprocess.run([sys.executable, "-c", later], check=True)


COLUMNS: dict[str, Callable[[str], int]] = {
    "murmur3_raw_unsigned": lambda key: hashing.murmur3_raw(key.encode()),
    "murmur3_32": lambda key: hashing.murmur3_32(key.encode()),
    "java_string_hash": hashing.java_string_hash,
    "sticky_slot_65536": lambda key: hashing.sticky_slot(key.encode()),
    "sticky_slot_consistent": lambda key: hashing.consistent_sticky_slot(key.encode()),
    "routing_java_mod_10": lambda key: hashing.java_string_hash(key) % 10,
    "routing_murmur_mod_10": lambda key: hashing.murmur3_32(key.encode()) % 10,
}


@pytest.mark.parametrize(
    ("key", "column", "expected"),
    [
        (row["key"], column, row[column])
        for row in TABLES["hashes"]
        for column in COLUMNS
        if column in row
    ],
)
def test_keys_hash_as_recorded(key: str, column: str, expected: int) -> None:
    assert COLUMNS[column](key) == expected


@pytest.mark.parametrize("row", TABLES["topics_hash"], ids=lambda row: row["hash"])
def test_topic_lists_hash_as_recorded(row: dict[str, Any]) -> None:
    assert hashing.topics_hash(reversed(row["topics"])) == row["hash"]


@pytest.mark.parametrize("row", TABLES["bundle_hash"], ids=lambda row: row["hex"])
def test_topics_fall_into_bundles_as_recorded(row: dict[str, Any]) -> None:
    assert hashing.bundle_hash(row["topic"]) == row["crc32"]


def test_crc32c_is_castagnoli_and_can_be_continued() -> None:
    check = TABLES["crc32c_check"]
    data = check["input"].encode()

    assert hashing.crc32c(data) == int(check["value"], 16)
    assert hashing.crc32c(data[4:], hashing.crc32c(data[:4])) == int(check["value"], 16)


@pytest.mark.parametrize(
    ("data", "expected"),
    [(b"", 0), (b"\xff", 0xFD6CF10D), (b"abc", 0xB3DD93FA), (b"abcde", 0xE89B9AF6)],
)
def test_every_tail_of_murmur3(data: bytes, expected: int) -> None:
    assert hashing.murmur3_raw(data) == expected


def test_no_sticky_slot_is_zero() -> None:
    assert hashing.sticky_slot(b"") == 1
    assert hashing.consistent_sticky_slot(b"") == 1


def test_java_hashes_utf_16_units() -> None:
    assert hashing.java_string_hash("ä") == 228
    assert hashing.java_string_hash("😀") == (0xD83D * 31 + 0xDE00) & 0x7FFFFFFF


@pytest.mark.parametrize(
    ("key", "partition"),
    [
        ("a", 639),
        ("b", 922),
        ("ab", 591),
        ("abc", 599),
        ("abcd", 925),
        ("key-1", 719),
        ("key-22", 975),
        ("abcdefg", 858),
        ("abcdefgh", 932),
        ("abcdefghi", 603),
        ("hello world 1234567890", 110),
        ("ä", 145),
        ("日本語", 400),
    ],
)
def test_boost_hashes_as_the_official_python_client_does(key: str, partition: int) -> None:
    """Where pulsar-client 3.13 sent each key on a topic of 997 partitions."""
    assert hashing.boost_string_hash(key.encode()) % 997 == partition


def test_boost_hashes_nothing_too() -> None:
    assert 0 <= hashing.boost_string_hash(b"") < 2**31
