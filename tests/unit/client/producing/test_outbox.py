"""Compression, threads, encryption, chunks, time-outs, beside a scripted broker."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from pulsar_py.client.client import Client
from pulsar_py.client.producing.producer import Producer
from pulsar_py.client.security.crypto_keys import CryptoKeyReader
from pulsar_py.client.security.message_crypto import ROTATION_SECONDS, MessageDecryptor
from pulsar_py.client.shared.enums import CompressionType, ProducerCryptoFailureAction
from pulsar_py.common.errors import ClientTimeoutError, CryptoError, MessageTooBigError
from pulsar_py.common.message_id import MessageId
from pulsar_py.proto.PulsarApi_pb2 import BaseCommand
from pulsar_py.wire.batch import split_batch
from pulsar_py.wire.compression import decompress
from tests.producer_parts import TOPIC, confirming, connected_with, payloads, receipt, sent
from tests.scripted_broker import ScriptedBroker, simulated, simulated_client


async def producer_of(client: Client, topic: str = TOPIC, **options: Any) -> Producer:
    made = await client.create_producer(topic, **options)
    assert isinstance(made, Producer)
    return made


def whole(broker: ScriptedBroker, index: int = 0) -> bytes:
    """The payload of an entry, decompressed."""
    entry = sent(broker)[index].entry
    metadata = entry.metadata
    if not metadata.compression:
        return entry.payload
    return decompress(metadata.compression, entry.payload, metadata.uncompressed_size)


@simulated
async def test_the_next_receipt_is_expected_and_may_not_call_anybody(
    broker: ScriptedBroker,
) -> None:
    async with simulated_client(broker) as client:
        producer = await producer_of(client)
        outbox = producer._session._outbox  # as connections ask it

        def expects(sequence_id: int, highest: int = 0, *, calls_back: bool = False) -> bool:
            return outbox.expects_receipt(sequence_id, highest, calls_back=calls_back)

        assert not expects(0)
        first, _ = producer.send_nowait(b"0"), producer.send_nowait(b"1")
        await asyncio.sleep(0.01)
        assert [expects(number) for number in range(3)] == [True, False, False]
        assert [expects(0, highest) for highest in (-1, 0, 1)] == [True, True, False]
        first.add_done_callback(lambda _: None)
        assert not expects(0)
        assert expects(0, calls_back=True)
        broker.end.push(receipt(sent(broker)[0].send, 0))
        await first
        assert expects(1)


# --- compression -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", list(CompressionType)[1:])
@pytest.mark.parametrize("size", [5000, 3_000_000])
def test_payloads_are_compressed(kind: CompressionType, size: int) -> None:
    """The larger ones in a thread; order holds all the same."""

    @simulated
    async def run(broker: ScriptedBroker) -> None:
        broker.script[BaseCommand.SEND] = confirming()
        async with simulated_client(broker) as client:
            producer = await producer_of(client, compression_type=kind)
            large = producer.send_nowait(b"x" * size)
            small = producer.send_nowait(b"small")
            assert [(await large).entry_id, (await small).entry_id] == [0, 1]
        first, second = sent(broker)
        assert first.entry.metadata.compression == kind
        assert len(first.entry.payload) < size / 10
        assert whole(broker, 0) == b"x" * size
        assert not second.entry.metadata.HasField("compression")
        assert second.payloads == [b"small"]

    run()


@simulated
async def test_batches_are_compressed_as_one(broker: ScriptedBroker) -> None:
    broker.script[BaseCommand.SEND] = confirming()
    async with simulated_client(broker) as client:
        producer = await producer_of(
            client,
            batching_enabled=True,
            compression_type=CompressionType.LZ4,
            compress_min_msg_body_size=0,
        )
        for number in range(3):
            producer.send_nowait(b"%d" % number * 100)
        await producer.flush()
    messages = split_batch(whole(broker), 3)
    assert [each.payload for each in messages] == [b"0" * 100, b"1" * 100, b"2" * 100]


@simulated
async def test_closing_waits_for_the_thread(broker: ScriptedBroker) -> None:
    broker.script[BaseCommand.SEND] = confirming()
    async with simulated_client(broker) as client:
        producer = await producer_of(client, compression_type=CompressionType.ZLib)
        result = producer.send_nowait(b"x" * 100_000)
        await producer.close()
        assert (await result).entry_id == 0


# --- chunks ------------------------------------------------------------------------------------


@simulated
async def test_a_large_message_goes_out_in_chunks(broker: ScriptedBroker) -> None:
    broker.script[BaseCommand.CONNECT] = connected_with(300)
    broker.script[BaseCommand.SEND] = confirming()
    payload = bytes(range(256)) * 4
    async with simulated_client(broker) as client:
        producer = await producer_of(client, chunking_enabled=True)
        before = producer.send_nowait(b"before")
        result = producer.send_nowait(payload, key="k")
        after = producer.send_nowait(b"after")
        message_id = await result
        assert message_id == MessageId(3, 4, first_chunk=MessageId(3, 1))
        assert [(await before).entry_id, (await after).entry_id] == [0, 5]
        assert client.context.memory_limit.current_bytes == 0
        assert producer.statistics().total_receipts_received == 3
    chunks = sent(broker)[1:-1]
    assert b"".join(each.entry.payload for each in chunks) == payload
    assert all(each.send.is_chunk and each.send.sequence_id == 1 for each in chunks)
    assert [each.entry.metadata.chunk_id for each in chunks] == [0, 1, 2, 3]
    assert {each.entry.metadata.uuid for each in chunks} == {"p-1"}
    assert not sent(broker)[0].send.is_chunk


@simulated
async def test_chunks_without_receipt_are_sent_again(broker: ScriptedBroker) -> None:
    broker.script[BaseCommand.CONNECT] = connected_with(300)
    async with simulated_client(broker) as client:
        producer = await producer_of(client, chunking_enabled=True)
        result = producer.send_nowait(b"x" * 700)
        await asyncio.sleep(0.1)
        broker.end.push(receipt(sent(broker)[0].send, 0))
        await asyncio.sleep(0.1)
        assert not result.done()
        broker.script[BaseCommand.SEND] = confirming()
        broker.end.cut()
        message_id = await result
    assert [each.entry.metadata.chunk_id for each in sent(broker)] == [0, 1, 2, 1, 2]
    assert message_id.first_chunk == MessageId(3, 0)


@simulated
async def test_chunks_fail_together(broker: ScriptedBroker) -> None:
    broker.script[BaseCommand.CONNECT] = connected_with(300)
    async with simulated_client(broker) as client:
        producer = await producer_of(client, chunking_enabled=True, send_timeout_millis=100)
        with pytest.raises(ClientTimeoutError):
            await producer.send(b"x" * 700)
        assert client.context.memory_limit.current_bytes == 0


@simulated
async def test_the_user_may_want_smaller_chunks(broker: ScriptedBroker) -> None:
    broker.script[BaseCommand.SEND] = confirming()
    async with simulated_client(broker) as client:
        producer = await producer_of(client, chunking_enabled=True, chunk_max_message_size=10)
        await producer.send(b"x" * 25)
        await producer.send_nowait(b"y" * 11)
    assert payloads(broker) == [[b"x" * 10], [b"x" * 10], [b"x" * 5], [b"y" * 10], [b"y"]]


@simulated
async def test_what_is_not_persistent_is_not_cut(broker: ScriptedBroker) -> None:
    broker.script[BaseCommand.CONNECT] = connected_with(300)
    async with simulated_client(broker) as client:
        producer = await producer_of(
            client, "non-persistent://public/default/t", chunking_enabled=True
        )
        with pytest.raises(MessageTooBigError):
            await producer.send(b"x" * 700)


@simulated
async def test_compressing_comes_before_cutting(broker: ScriptedBroker) -> None:
    broker.script[BaseCommand.CONNECT] = connected_with(300)
    broker.script[BaseCommand.SEND] = confirming()
    async with simulated_client(broker) as client:
        producer = await producer_of(
            client, chunking_enabled=True, compression_type=CompressionType.ZLib
        )
        await producer.send(b"x" * 10_000)
    assert len(sent(broker)) == 1
    assert whole(broker) == b"x" * 10_000


# --- encryption --------------------------------------------------------------------------------

KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)


class Keys(CryptoKeyReader):
    """A real key, which may be missing for a while."""

    def __init__(self) -> None:
        super().__init__()
        self.asked_count = 0
        self.is_missing = False

    def get_public_key(self, key_name: str, metadata: Mapping[str, str]) -> bytes:
        self.asked_count += 1
        if self.is_missing:
            raise CryptoError(f"no key {key_name}")
        return KEY.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )

    def get_private_key(self, key_name: str, metadata: Mapping[str, str]) -> bytes:
        return KEY.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )


async def decrypted(broker: ScriptedBroker, index: int) -> bytes:
    decryptor = MessageDecryptor(Keys())
    entry = sent(broker)[index].entry
    await decryptor.learn_key(entry.metadata)
    return decryptor.decrypt(entry.metadata, entry.payload)


@simulated
async def test_messages_batches_and_chunks_are_encrypted(broker: ScriptedBroker) -> None:
    broker.script[BaseCommand.SEND] = confirming()
    reader = Keys()
    async with simulated_client(broker) as client:
        options = {"encryption_key": "k", "crypto_key_reader": reader}
        producer = await producer_of(client, **options)
        await producer.send(b"alone")
        assert broker.of(BaseCommand.PRODUCER)[0].producer.encrypted
        batching = await producer_of(client, batching_enabled=True, **options)
        await asyncio.gather(batching.send(b"1"), batching.send(b"2"))
        chunking = await producer_of(
            client, chunking_enabled=True, chunk_max_message_size=3, **options
        )
        await chunking.send(b"abcde")
    assert await decrypted(broker, 0) == b"alone"
    batch = split_batch(await decrypted(broker, 1), 2)
    assert [each.payload for each in batch] == [b"1", b"2"]
    assert [await decrypted(broker, 2), await decrypted(broker, 3)] == [b"abc", b"de"]
    assert reader.asked_count == 3


@simulated
async def test_the_data_key_is_renewed_and_order_holds(broker: ScriptedBroker) -> None:
    broker.script[BaseCommand.SEND] = confirming()
    reader = Keys()
    async with simulated_client(broker) as client:
        producer = await producer_of(client, encryption_key="k", crypto_key_reader=reader)
        await producer.send(b"0")
        await asyncio.sleep(ROTATION_SECONDS + 1)
        results = [producer.send_nowait(b"%d" % number) for number in (1, 2, 3)]
        assert [(await each).entry_id for each in results] == [1, 2, 3]
    assert [await decrypted(broker, index) for index in range(4)] == [b"0", b"1", b"2", b"3"]
    wrapped = {each.entry.metadata.encryption_keys[0].value for each in sent(broker)}
    assert len(wrapped) == 2


@simulated
async def test_without_a_key_nothing_is_created(broker: ScriptedBroker) -> None:
    reader = Keys()
    reader.is_missing = True
    async with simulated_client(broker) as client:
        with pytest.raises(CryptoError):
            await producer_of(client, encryption_key="k", crypto_key_reader=reader)
        assert not client.context.children


@simulated
async def test_without_a_key_messages_go_as_they_are_where_that_is_wanted(
    broker: ScriptedBroker,
) -> None:
    broker.script[BaseCommand.SEND] = confirming()
    reader = Keys()
    reader.is_missing = True
    async with simulated_client(broker) as client:
        producer = await producer_of(
            client,
            encryption_key="k",
            crypto_key_reader=reader,
            crypto_failure_action=ProducerCryptoFailureAction.SEND,
        )
        await producer.send(b"open")
    assert payloads(broker) == [[b"open"]]


# --- time --------------------------------------------------------------------------------------


@simulated
async def test_only_what_is_too_old_times_out(broker: ScriptedBroker) -> None:
    async with simulated_client(broker) as client:
        producer = await producer_of(client, send_timeout_millis=1000)
        old = producer.send_nowait(b"old")
        await asyncio.sleep(0.6)
        new = producer.send_nowait(b"new")
        await asyncio.sleep(0.5)
        assert isinstance(old.exception(), ClientTimeoutError)
        assert not new.done()
        broker.end.push(receipt(sent(broker)[1].send, 5))
        assert (await new).entry_id == 5


@simulated
async def test_without_a_timeout_it_waits_for_ever(broker: ScriptedBroker) -> None:
    async with simulated_client(broker, operation_timeout_seconds=1) as client:
        producer = await producer_of(client, send_timeout_millis=0)
        result = producer.send_nowait(b"x")
        await asyncio.sleep(100_000)
        assert not result.done()


@simulated
async def test_messages_time_out_without_a_connection_too(broker: ScriptedBroker) -> None:
    async with simulated_client(broker) as client:
        producer = await producer_of(client, send_timeout_millis=2000)
        broker.script.pop(BaseCommand.PRODUCER)
        broker.end.cut()
        await asyncio.sleep(0.1)
        with pytest.raises(ClientTimeoutError, match="not connected"):
            await producer.send(b"x")
