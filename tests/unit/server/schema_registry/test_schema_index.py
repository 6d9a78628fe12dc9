from __future__ import annotations

import random

import pytest
from msgspec.structs import replace

from pulsar_py.proto.PulsarApi_pb2 import Schema
from pulsar_py.proto.PulsarPySchema_pb2 import MarkedSchemaLocator
from pulsar_py.proto.SchemaStorageFormat_pb2 import SchemaLocator
from pulsar_py.server.schema_registry.definition import SchemaDefinition, StoredSchema
from pulsar_py.server.schema_registry.schema_index import (
    ROOM_FROM_BYTES,
    SchemaIndex,
    first_locator,
    mark_of,
    with_room,
)


def avro(text: str) -> SchemaDefinition:
    return SchemaDefinition(Schema.Avro, text.encode())


def stored(number: int, data: str, *, is_deleted: bool = False) -> StoredSchema:
    return StoredSchema(avro(data), number, 1, is_deleted=is_deleted)


def index_of(*versions: StoredSchema) -> SchemaIndex:
    locator = first_locator(versions[0], 10)
    index = SchemaIndex(locator.SerializeToString(), 0)
    for place, version in enumerate(versions[1:], 1):
        locator = index.with_next(version, 10 + place)
        index.on_written(locator, locator.SerializeToString(), place)
    return index


def test_a_mark_is_shared_by_definitions_that_are_equal() -> None:
    one, other = avro('{"type":"map","values":"int"}'), avro('{"values": "int", "type": "map"}')
    assert mark_of(one) == mark_of(other) != 0
    assert mark_of(one) != mark_of(replace(one, type=Schema.Json))
    assert mark_of(one) != mark_of(avro('{"type":"map","values":"long"}'))


def test_pulsar_reads_the_locator() -> None:
    index = index_of(stored(0, '"int"'), stored(1, '"long"'))
    locator = SchemaLocator.FromString(index.value)
    assert [each.position.ledgerId for each in locator.index] == [10, 11]
    assert locator.info.position == locator.index[1].position
    assert locator.info.hash == avro('"long"').sha256


def test_candidates_have_the_hash_or_the_mark() -> None:
    index = index_of(
        stored(0, '{"type":"map","values":"int"}'), stored(1, '"int"'), stored(2, '"long"')
    )
    assert index.candidates(avro('{"values":"int","type":"map"}')) == [0]
    assert index.candidates(avro('"long"')) == [2]
    assert index.candidates(SchemaDefinition(Schema.Json, b'"int"')) == [1]
    assert index.candidates(avro('"string"')) == []


def test_a_parsed_index_is_like_one_that_grew() -> None:
    grown = index_of(stored(0, '"int"'), stored(1, "", is_deleted=True), stored(2, '"long"'))
    parsed = SchemaIndex(grown.value, grown.locator_version)
    for index in (grown, parsed):
        assert len(index) == 3
        assert index.latest == 2
        assert list(index.live) == [2]
        assert index.candidates(avro('"int"')) == []
        assert index.candidates(avro('"long"')) == [2]


def test_deletions_are_found_among_random_hashes() -> None:
    chance = random.Random(1)  # a fixed seed: hashes look like fields that have none, now and then
    for deleted in (None, 0, 700, 1999):
        locator = MarkedSchemaLocator()
        for number in range(2000):
            entry = locator.index.add(version=number, mark=chance.getrandbits(64))
            entry.position.ledgerId = chance.choice((number, 1 << 62, 0x1A00))
            entry.position.entryId = chance.choice((0, 0x101A00, 1 << 62))
            entry.hash = b"" if number == deleted else chance.randbytes(32)
        locator.info.CopyFrom(entry)
        index = SchemaIndex(locator.SerializeToString(), 1)
        assert index.first_live == (0 if deleted is None else deleted + 1)


def test_versions_without_a_mark_are_marked_with_the_next() -> None:
    whole = index_of(stored(0, '"int"'), stored(1, '"long"'))
    locator = SchemaLocator.FromString(whole.value)
    locator.DiscardUnknownFields()
    index = SchemaIndex(locator.SerializeToString(), 1)
    assert index.unmarked() == [0, 1]
    index.mark([stored(1, '"long"')])
    assert index.unmarked() == [0]
    value = index.with_next(stored(2, '"float"'), 12).SerializeToString()
    assert SchemaIndex(value, 2).unmarked() == [0]


def test_few_lengths_of_a_locator_that_grows() -> None:
    """What a store writes that writes only differences: linear, though each value is longer."""
    locator = first_locator(stored(0, "0"), 10)
    index = SchemaIndex(locator.SerializeToString(), 0)
    lengths: list[int] = []
    for number in range(1, 1000):
        locator = index.with_next(stored(number, str(number)), 10 + number)
        bare = locator.SerializeToString()
        value = with_room(bare, len(index.value))
        assert value.startswith(bare)
        if len(bare) < ROOM_FROM_BYTES:
            assert value == bare
        else:
            assert len(value) <= len(bare) * 9 / 8 + 4096
            lengths.append(len(value))
        index.on_written(locator, value, number)
    assert len(set(lengths)) < 20
    assert len(lengths) > 800
    pulsars = SchemaLocator.FromString(index.value)
    assert [each.version for each in pulsars.index] == list(range(1000))
    read = SchemaIndex(index.value, 7)
    grown = read.with_next(stored(1000, "1000"), 2000)
    assert not grown.room
    assert len(grown.index) == 1001


def test_room_fills_any_size_but_a_byte_or_two() -> None:
    value = bytes(ROOM_FROM_BYTES)
    for size in (*range(3, 400), 16_386, 16_387, 16_388, 16_389, 16_390, 2_097_157, 2_097_158):
        assert len(with_room(value, len(value) + size)) == len(value) + size
    for size in (-100, -1, 1, 2):
        assert len(with_room(value, len(value) + size)) == 12_288
    assert with_room(value, len(value)) == value


@pytest.mark.parametrize("is_marked", [True, False])
def test_a_version_of_a_large_index_is_found_before_all_are_parsed(*, is_marked: bool) -> None:
    chance = random.Random(2)
    locator = MarkedSchemaLocator()
    for number in range(3000):
        entry = locator.index.add(version=number, hash=chance.randbytes(32))
        entry.position.ledgerId, entry.position.entryId = number * 100 + chance.randrange(99), 0
        if is_marked or number > 2990:
            entry.mark = chance.getrandbits(64)
    locator.info.CopyFrom(entry)
    value = with_room(locator.SerializeToString(), 0)
    index = SchemaIndex(value, 1)
    assert (len(index), index.latest, index.live) == (3000, 2999, range(3000))
    assert all(index.entry(number) == locator.index[number] for number in range(3000))
    assert not index.is_parsed
    assert list(index.entries) == list(locator.index)


def test_bytes_like_an_entry_in_a_hash_are_no_version() -> None:
    locator = MarkedSchemaLocator()
    for number in range(300):
        entry = locator.index.add(version=number, hash=b"\x12\x1e\x08\x05\x12" + bytes(27))
        entry.position.ledgerId, entry.position.entryId = number, 0
    locator.info.CopyFrom(entry)
    index = SchemaIndex(locator.SerializeToString(), 1)
    assert [index.entry(number).position.ledgerId for number in range(300)] == list(range(300))


def test_versions_that_share_a_hash_or_a_mark_are_all_candidates() -> None:
    same = ('"int"', '"long"', '"int"', '"int"')
    index = index_of(*(stored(number, data) for number, data in enumerate(same)))
    for each in (index, SchemaIndex(index.value, 1)):
        assert each.candidates(avro('"int"')) == [0, 2, 3]
        assert each.candidates(avro('"long"')) == [1]
