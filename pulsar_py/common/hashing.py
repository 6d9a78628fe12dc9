"""The hash functions that the protocol, brokers and clients agree on (pure).

Murmur3 decides sticky keys and the ring of Failover, Java's string hash, Murmur3 and Boost's hash
the partition of a key, CRC32C guards payloads and stored records, CRC32 picks a topic's bundle.

`crc32c(data, value=0)` is the `crc32c` package's own function, without a wrapper that would cost
more than it: CRC32C (Castagnoli) of any buffer, unsigned, `value` being that of the bytes before.
Of that package only the extension is loaded: the package itself reads its version and declares a
command when it is imported, for which it loads fifty modules (an eighth of a broker's start).

Source: Murmur3_32Hash, JavaStringHash, TopicList and NamespaceBundleFactory in Pulsar.
"""

from __future__ import annotations

import struct
import sys
import zlib
from collections.abc import Iterable
from functools import lru_cache
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

    from crc32c import crc32c

__all__ = [
    "boost_string_hash",
    "bundle_hash",
    "consistent_sticky_slot",
    "crc32c",
    "java_string_hash",
    "murmur3_32",
    "murmur3_raw",
    "sticky_slot",
    "topics_hash",
]


def _crc32c_extension() -> ModuleType:
    """`crc32c._crc32c`, which whoever imports `crc32c` later finds as well."""
    name = "crc32c._crc32c"
    package = PathFinder.find_spec("crc32c")
    places = None if package is None else package.submodule_search_locations
    spec = PathFinder.find_spec(name, places)
    if name in sys.modules or spec is None or spec.loader is None:
        import crc32c as whole  # noqa: PLC0415 - loaded already, or installed in a form of its own

        return whole
    extension = sys.modules[name] = module_from_spec(spec)
    spec.loader.exec_module(extension)
    return extension


if not TYPE_CHECKING:
    crc32c = _crc32c_extension().crc32c

_MASK = 0xFFFFFFFF
_POSITIVE = 0x7FFFFFFF
_MASK_64 = 0xFFFFFFFFFFFFFFFF
_GOLDEN = 0x9E3779B97F4A7C15  # 2**64 divided by the golden ratio
_GOLDEN_SQUARED = 0xDF442D22CE4859B9
_STRAIGHT_SLOTS = 65536
_RING_SLOTS = 65535


def murmur3_raw(data: bytes) -> int:
    """Murmur3 x86 32-bit with seed 0, unsigned."""
    length = len(data)
    body_length = length & ~3
    h = 0
    for (word,) in struct.iter_unpack("<I", data[:body_length]):
        k = word * 0xCC9E2D51 & _MASK
        k = (k << 15 | k >> 17) * 0x1B873593 & _MASK
        h ^= k
        h = (h << 13 | h >> 19) & _MASK
        h = h * 5 + 0xE6546B64 & _MASK
    if body_length != length:
        k = int.from_bytes(data[body_length:], "little") * 0xCC9E2D51 & _MASK
        h ^= (k << 15 | k >> 17) * 0x1B873593 & _MASK
    h ^= length
    h = (h ^ h >> 16) * 0x85EBCA6B & _MASK
    h = (h ^ h >> 13) * 0xC2B2AE35 & _MASK
    return h ^ h >> 16


@lru_cache(maxsize=16384)
def murmur3_32(data: bytes) -> int:
    """Pulsar's Murmur3: the raw value with its sign bit cleared.

    Recent keys are remembered, because Key_Shared asks for the same few again and again.

    Source: Murmur3_32Hash.
    """
    return murmur3_raw(data) & _POSITIVE


def java_string_hash(text: str) -> int:
    """`String.hashCode` over UTF-16 code units with the sign bit cleared.

    Source: JavaStringHash.
    """
    units = text.encode("utf-16-le", "surrogatepass")
    h = 0
    for (unit,) in struct.iter_unpack("<H", units):
        h = 31 * h + unit & _MASK
    return h & _POSITIVE


def boost_string_hash(data: bytes) -> int:
    """The hash of a key in the official Python and C++ clients, with the sign bit cleared.

    It is `boost::hash<std::string>` of Boost 1.81 and later on 64-bit machines, as built into the
    official wheels; checked against the partitions that they choose.
    """
    length = len(data)
    weight = _fold(_GOLDEN)
    h = weight ^ length
    body_length = length & ~7
    for (word,) in struct.iter_unpack("<Q", data[:body_length]):
        weight = weight + _GOLDEN & _MASK_64
        h ^= _fold(word + weight & _MASK_64)
    weight = weight + _GOLDEN & _MASK_64
    h ^= _fold(_tail_word(data[body_length:]) + weight & _MASK_64)
    return _fold(h + weight & _MASK_64) & _POSITIVE


def _fold(value: int) -> int:
    """The halves of a 128-bit product, xored."""
    product = value * _GOLDEN_SQUARED
    return product & _MASK_64 ^ product >> 64


def _tail_word(tail: bytes) -> int:
    """Return up to seven bytes as one number, in which a byte may occur twice: part of the hash."""
    length = len(tail)
    if length >= 4:  # noqa: PLR2004 - two overlapping words of 32 bits
        high = int.from_bytes(tail[length - 4 :], "little") << 8 * (length - 4)
        return high | int.from_bytes(tail[:4], "little")
    if not length:
        return 0
    first = (length - 1) & 2
    second = length >> 1
    return tail[first] << 8 * first | tail[second] << 8 * second | tail[0]


def sticky_slot(key: bytes) -> int:
    """Slot 1..65535 of a sticky key where consumers own hash ranges (STICKY, AUTO_SPLIT ranges)."""
    return murmur3_32(key) % _STRAIGHT_SLOTS or 1


def consistent_sticky_slot(key: bytes) -> int:
    """Slot 1..65535 of a sticky key, or of a point, on the ring of consistent hashing."""
    return murmur3_32(key) % _RING_SLOTS + 1


def bundle_hash(topic_name: str) -> int:
    """CRC32 (IEEE) of a topic's full name, unsigned: where it lies among its namespace's bundles.

    Source: NamespaceBundleFactory.getLongHashCode.
    """
    return zlib.crc32(topic_name.encode())


def topics_hash(topic_names: Iterable[str]) -> str:
    """The hash of a topic list in GET_TOPICS_OF_NAMESPACE and WATCH_TOPIC_LIST.

    CRC32C over the sorted names joined by commas, its four bytes in little endian order as hex.

    Source: TopicList.calculateHash.
    """
    joined = ",".join(sorted(topic_names)).encode()
    return crc32c(joined).to_bytes(4, "little").hex()
