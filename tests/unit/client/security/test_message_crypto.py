"""Encryption both ways, rotation and failures."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from pulsar_py.client.security.crypto_keys import CryptoKeyReader, EncryptionKeyInfo
from pulsar_py.client.security.key_wrapping import wrap_key
from pulsar_py.client.security.message_crypto import (
    ENCRYPTION_OVERHEAD_BYTES,
    RETRY_SECONDS,
    ROTATION_SECONDS,
    EncryptionContext,
    EncryptionKey,
    MessageDecryptor,
    MessageEncryptor,
)
from pulsar_py.client.shared.enums import CompressionType, ProducerCryptoFailureAction
from pulsar_py.common.errors import CryptoError, InvalidConfigurationError
from pulsar_py.proto.PulsarApi_pb2 import CompressionType as WireCompressionType
from pulsar_py.proto.PulsarApi_pb2 import MessageMetadata

PAYLOAD = b"secret" * 10


class Keys(CryptoKeyReader):
    """Real keys by name, and a list of what was asked for."""

    def __init__(self, *names: str) -> None:
        super().__init__()
        self.keys = {name: KEYS[name] for name in names}
        self.asked: list[tuple[str, str, dict[str, str]]] = []

    def get_public_key(self, key_name: str, metadata: Mapping[str, str]) -> EncryptionKeyInfo:
        self.asked.append(("public", key_name, dict(metadata)))
        public = self.keys[key_name].public_key()
        pem = public.public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        return EncryptionKeyInfo(pem, {"of": key_name})

    def get_private_key(self, key_name: str, metadata: Mapping[str, str]) -> bytes:
        self.asked.append(("private", key_name, dict(metadata)))
        return self.keys[key_name].private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )


KEYS = {
    name: rsa.generate_private_key(public_exponent=65537, key_size=2048)
    for name in ("mine", "yours")
}


def metadata() -> MessageMetadata:
    return MessageMetadata(producer_name="p", sequence_id=1, publish_time=2)


def counted_bytes() -> Callable[[int], bytes]:
    """Bytes that differ at each call, and can be told apart."""
    numbers = itertools.count(1)
    return lambda length: next(numbers).to_bytes(length, "big")


async def encryptor(*names: str, **options: object) -> MessageEncryptor:
    made = MessageEncryptor(names, Keys("mine", "yours"), **options)  # type: ignore[arg-type]
    await made.rotate(0.0)
    return made


async def decrypted(reader: CryptoKeyReader, data: MessageMetadata, payload: bytes) -> bytes:
    decryptor = MessageDecryptor(reader)
    await decryptor.learn_key(data)
    return decryptor.decrypt(data, payload)


async def test_what_was_encrypted_is_decrypted() -> None:
    data = metadata()

    payload = (await encryptor("mine")).encrypt(data, PAYLOAD)

    assert len(payload) == len(PAYLOAD) + ENCRYPTION_OVERHEAD_BYTES
    assert b"secret" not in payload
    assert data.IsInitialized()
    assert [each.key for each in data.encryption_keys] == ["mine"]
    assert not data.HasField("encryption_algo")
    assert await decrypted(Keys("mine"), data, payload) == PAYLOAD


async def test_each_of_several_keys_will_do() -> None:
    data = metadata()
    payload = (await encryptor("mine", "yours")).encrypt(data, PAYLOAD)

    for name in ("mine", "yours"):
        assert await decrypted(Keys(name), data, payload) == PAYLOAD


async def test_a_reader_gets_what_the_other_side_gave_along() -> None:
    data, reader = metadata(), Keys("mine")
    payload = (await encryptor("mine")).encrypt(data, PAYLOAD)

    await decrypted(reader, data, payload)

    assert reader.asked == [("private", "mine", {"of": "mine"})]


async def test_each_payload_has_an_iv_of_its_own() -> None:
    made = await encryptor("mine", random_bytes=counted_bytes())
    one, two = metadata(), metadata()

    assert made.encrypt(one, PAYLOAD) != made.encrypt(two, PAYLOAD)

    assert (one.encryption_param, two.encryption_param) == (bytes(11) + b"\2", bytes(11) + b"\3")
    assert one.encryption_keys == two.encryption_keys


async def test_a_reused_metadata_has_only_the_newest_keys() -> None:
    made, data = await encryptor("mine"), metadata()

    made.encrypt(data, PAYLOAD)
    made.encrypt(data, PAYLOAD)

    assert len(data.encryption_keys) == 1


async def test_rotation_is_due_at_first_and_every_four_hours() -> None:
    made = MessageEncryptor(["mine"], Keys("mine"))

    assert made.rotation_due(100.0)
    await made.rotate(100.0)
    assert not made.rotation_due(100.0 + ROTATION_SECONDS - 1)
    assert made.rotation_due(100.0 + ROTATION_SECONDS)


async def test_rotation_changes_the_data_key_and_asks_for_public_keys_again() -> None:
    reader = Keys("mine")
    made = MessageEncryptor(["mine"], reader)
    one, two = metadata(), metadata()
    await made.rotate(0.0)
    made.encrypt(one, PAYLOAD)

    await made.rotate(ROTATION_SECONDS)

    made.encrypt(two, PAYLOAD)
    assert one.encryption_keys[0].value != two.encryption_keys[0].value
    assert len(reader.asked) == 2


async def test_an_added_key_takes_part_from_the_next_rotation_on() -> None:
    made, data = await encryptor("mine"), metadata()

    made.add_key("yours")

    assert made.rotation_due(0.0)
    made.encrypt(data, PAYLOAD)
    assert [each.key for each in data.encryption_keys] == ["mine"]
    await made.rotate(0.0)
    made.encrypt(data, PAYLOAD)
    assert [each.key for each in data.encryption_keys] == ["mine", "yours"]
    assert made.key_names == {"mine", "yours"}


async def test_a_removed_key_is_left_out_at_once() -> None:
    made, data = await encryptor("mine", "yours"), metadata()

    made.remove_key("yours")

    assert made.rotation_due(0.0)
    made.encrypt(data, PAYLOAD)
    assert [each.key for each in data.encryption_keys] == ["mine"]
    await made.rotate(0.0)
    assert not made.rotation_due(0.0)


async def test_the_last_key_stays() -> None:
    made = await encryptor("mine")

    with pytest.raises(InvalidConfigurationError, match="mine is the last one"):
        made.remove_key("mine")


async def test_a_key_that_can_not_be_had_fails_the_rotation_and_the_message() -> None:
    made = MessageEncryptor(["mine"], Keys())

    with pytest.raises(CryptoError, match="public key mine"):
        await made.rotate(0.0)
    with pytest.raises(CryptoError, match="no data key for mine"):
        made.encrypt(metadata(), PAYLOAD)


async def test_after_a_failed_rotation_the_old_key_is_used_and_the_next_try_waits() -> None:
    reader = Keys("mine")
    made = MessageEncryptor(["mine"], reader)
    await made.rotate(0.0)
    reader.keys.clear()

    with pytest.raises(CryptoError):
        await made.rotate(ROTATION_SECONDS)

    assert made.encrypt(metadata(), PAYLOAD)
    assert not made.rotation_due(ROTATION_SECONDS + 1)
    assert made.rotation_due(ROTATION_SECONDS + RETRY_SECONDS)


async def test_with_send_a_message_without_key_goes_out_as_it_is() -> None:
    made = MessageEncryptor(["mine"], Keys(), failure_action=ProducerCryptoFailureAction.SEND)
    data = metadata()

    await made.rotate(0.0)

    assert made.encrypt(data, PAYLOAD) == PAYLOAD
    assert data == metadata()


@pytest.mark.parametrize("names", [[], [""], [7]])
def test_names_have_to_be_names(names: list[str]) -> None:
    with pytest.raises(InvalidConfigurationError, match="encryption_key"):
        MessageEncryptor(names, Keys())


def test_a_single_name_may_be_a_str() -> None:
    assert MessageEncryptor("mine", Keys("mine")).key_names == {"mine"}


def test_encryption_needs_a_reader() -> None:
    with pytest.raises(InvalidConfigurationError, match="crypto_key_reader"):
        MessageEncryptor(["mine"], None)  # type: ignore[arg-type]


# --- decryption --------------------------------------------------------------------------------


async def test_a_data_key_is_unwrapped_once() -> None:
    made, reader = await encryptor("mine"), Keys("mine")
    decryptor = MessageDecryptor(reader)
    for _ in range(3):
        data = metadata()
        payload = made.encrypt(data, PAYLOAD)
        await decryptor.learn_key(data)
        assert decryptor.knows_key(data)
        assert decryptor.decrypt(data, payload) == PAYLOAD
    assert len(reader.asked) == 1


async def test_only_the_data_keys_used_last_are_remembered() -> None:
    made = MessageEncryptor(["mine"], Keys("mine"))
    decryptor = MessageDecryptor(Keys("mine"), data_keys_limit=2)
    messages = []
    for number in range(3):
        await made.rotate(float(number))
        data = metadata()
        messages.append((data, made.encrypt(data, PAYLOAD)))
        await decryptor.learn_key(data)
        if number == 1:
            decryptor.decrypt(*messages[0])

    assert [decryptor.knows_key(data) for data, _ in messages] == [True, False, True]


async def test_a_consumer_without_reader_or_key_says_so() -> None:
    data = metadata()
    payload = (await encryptor("mine")).encrypt(data, PAYLOAD)

    assert MessageDecryptor(None).is_encrypted(data)
    with pytest.raises(CryptoError, match="no crypto_key_reader for mine"):
        await MessageDecryptor(None).learn_key(data)
    with pytest.raises(CryptoError, match="mine: private key mine: the key reader failed"):
        await MessageDecryptor(Keys("yours")).learn_key(data)
    with pytest.raises(CryptoError, match="no data key for mine"):
        MessageDecryptor(Keys("mine")).decrypt(data, payload)


async def test_a_payload_that_was_changed_is_noticed() -> None:
    data = metadata()
    payload = (await encryptor("mine")).encrypt(data, PAYLOAD)
    decryptor = MessageDecryptor(Keys("mine"))
    await decryptor.learn_key(data)

    for damaged in (payload[:-1], payload[1:], b"", payload[:5]):
        with pytest.raises(CryptoError, match="damaged, or encrypted with another key"):
            decryptor.decrypt(data, damaged)
    data.encryption_param = b""
    with pytest.raises(CryptoError, match="damaged, or encrypted with another key"):
        decryptor.decrypt(data, payload)


async def test_a_wrapped_key_of_a_foreign_length_is_refused() -> None:
    data = metadata()
    made = MessageEncryptor(["mine"], Keys("mine"), random_bytes=bytes)
    await made.rotate(0.0)
    made.encrypt(data, PAYLOAD)
    data.encryption_keys[0].value = wrap_key(KEYS["mine"].public_key(), b"short")

    with pytest.raises(CryptoError, match="a data key of 5 bytes"):
        await MessageDecryptor(Keys("mine")).learn_key(data)


def test_what_is_not_encrypted_is_told_apart() -> None:
    assert not MessageDecryptor(None).is_encrypted(metadata())


def test_the_context_says_how_a_message_was_encrypted() -> None:
    data = metadata()
    keys = data.encryption_keys.add(key="mine", value=b"wrapped")
    keys.metadata.add(key="version", value="7")
    data.encryption_param = b"iv"
    data.compression = WireCompressionType.LZ4
    data.uncompressed_size = 100

    context = EncryptionContext.of(data, is_decryption_failed=True)

    assert context.keys() == [EncryptionKey("mine", b"wrapped", {"version": "7"})]
    assert (context.param(), context.algorithm()) == (b"iv", "")
    assert context.compression_type() is CompressionType.LZ4
    assert (context.uncompressed_message_size(), context.batch_size()) == (100, -1)
    assert context.is_decryption_failed()
    data.num_messages_in_batch = 3
    assert EncryptionContext.of(data, is_decryption_failed=False).batch_size() == 3
