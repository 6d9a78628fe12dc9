"""Names, ids, ack sets and rates against naive models."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pulsar_py.common import ack_set
from pulsar_py.common.errors import InvalidTopicNameError
from pulsar_py.common.hashing import java_string_hash, murmur3_32, murmur3_raw
from pulsar_py.common.message_id import MessageId, to_signed, to_unsigned
from pulsar_py.common.names import TopicName, url_form_decode, url_form_encode
from pulsar_py.common.token_bucket import TokenBucket

ENTITY = st.text("-=:._azAZ09", min_size=1, max_size=8)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
INDEXES = st.sets(st.integers(0, 200), max_size=60)
SIGNED = st.integers(-(2**63), 2**63 - 1)


@given(ENTITY, ENTITY, TEXT, st.sampled_from(["persistent", "non-persistent"]))
def test_a_name_is_refused_or_reads_back(tenant: str, ns: str, local: str, domain: str) -> None:
    text = f"{domain}://{tenant}/{ns}/{local}"
    try:
        name = TopicName.parse(text)
    except InvalidTopicNameError:
        assert "/" in local or local.isspace() or {ns, tenant, local} & {".", ".."}
        return
    assert not {ns, tenant, local} & {".", ".."}
    assert str(name) == text
    assert TopicName.from_managed_ledger_name(name.managed_ledger_name) == name
    if not name.is_partition:
        assert name.partition(7).base == name
        assert TopicName.parse(str(name.partition(7))).partition_index == 7


@given(st.text(max_size=30))
def test_any_text_is_a_name_or_refused(text: str) -> None:
    try:
        name = TopicName.parse(text)
    except InvalidTopicNameError:
        return
    assert TopicName.parse(str(name)) == name


@given(TEXT)
def test_encoded_names_decode_and_fit_a_path(text: str) -> None:
    encoded = url_form_encode(text)

    assert url_form_decode(encoded) == text
    assert encoded.isascii()
    assert "/" not in encoded


@given(INDEXES, INDEXES)
def test_ack_sets_are_sets(one: set[int], other: set[int]) -> None:
    words = ack_set.from_indexes(one)

    assert set(ack_set.indexes(words)) == one
    assert ack_set.count(words) == len(one)
    assert ack_set.is_empty(words) is (not one)
    assert ack_set.to_words(ack_set.to_bits(words)) == words
    assert all(-(2**63) <= word < 2**63 for word in words)
    both = ack_set.intersect(words, ack_set.from_indexes(other))
    assert set(ack_set.indexes(both)) == one & other


@given(st.integers(1, 200), st.data())
def test_acknowledging_leaves_the_others(size: int, data: st.DataObject) -> None:
    index = data.draw(st.integers(0, size - 1))
    everything = set(range(size))

    assert set(ack_set.indexes(ack_set.after_acknowledging(index, size))) == everything - {index}
    assert set(ack_set.indexes(ack_set.from_index_on(index, size))) == set(range(index, size))


@given(
    SIGNED,
    SIGNED,
    st.integers(-1, 2**31 - 1),
    st.integers(-1, 2**31 - 1),
    st.one_of(st.none(), st.tuples(SIGNED, SIGNED)),
)
def test_message_ids_read_back(
    ledger_id: int,
    entry_id: int,
    partition_index: int,
    batch_index: int,
    first: tuple[int, int] | None,
) -> None:
    message_id = MessageId(
        ledger_id,
        entry_id,
        partition_index=partition_index,
        batch_index=batch_index,
        first_chunk=MessageId(*first) if first is not None else None,
    )

    assert MessageId.parse(message_id.serialize()) == message_id
    assert to_signed(to_unsigned(ledger_id)) == ledger_id


@given(st.binary(max_size=40))
def test_murmur3_is_that_of_its_definition(data: bytes) -> None:
    assert murmur3_raw(data) == naive_murmur3(data)
    assert murmur3_32(data) == naive_murmur3(data) % 2**31


def naive_murmur3(data: bytes) -> int:
    def rotate(value: int, bits: int) -> int:
        return (value << bits | value >> (32 - bits)) % 2**32

    h = 0
    for start in range(0, len(data), 4):
        block = data[start : start + 4]
        k = int.from_bytes(block, "little") * 0xCC9E2D51 % 2**32
        h ^= rotate(k, 15) * 0x1B873593 % 2**32
        if len(block) == 4:
            h = (rotate(h, 13) * 5 + 0xE6546B64) % 2**32
    h ^= len(data)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1)):
        h = (h ^ h >> shift) * factor % 2**32
    return h


@given(st.text(st.characters(max_codepoint=0xFFFF, exclude_categories=["Cs"]), max_size=20))
def test_the_string_hash_is_a_polynomial(text: str) -> None:
    naive = sum(ord(char) * 31 ** (len(text) - 1 - index) for index, char in enumerate(text))

    assert java_string_hash(text) == naive % 2**31


@given(
    st.floats(0.1, 1000),
    st.lists(st.tuples(st.floats(0, 10), st.floats(0, 50)), max_size=30),
)
def test_a_bucket_never_gives_more_than_rate_and_burst(
    rate: float, steps: list[tuple[float, float]]
) -> None:
    bucket = TokenBucket(rate, now=0.0)
    now = taken = 0.0
    for pause, count in steps:
        now += pause
        if bucket.try_take(count, now):
            taken += count
        assert bucket.available(now) <= bucket.capacity
        assert taken <= (rate * now + bucket.capacity) * (1 + 1e-9) + 1e-6
