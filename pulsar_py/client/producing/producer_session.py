"""Registers one producer at its broker, and again whenever the connection is lost (edge).

The connection calls it: receipts go to the outbox, and a lost connection or a CLOSE_PRODUCER begins
the registration anew. What the broker assigned at the first registration (name, sequence ids,
schema version, topic epoch) is sent with the next ones. What always holds: the outbox has a
connection exactly while the producer is registered there.

Source: ProducerImpl.connectionOpened in Pulsar's Java client; CommandProducer in PulsarApi.proto.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from pulsar_py.client.brokers.connection_handler import ConnectionHandler
from pulsar_py.client.producing.entry_encoder import EntryEncoder
from pulsar_py.client.producing.outbox import Outbox
from pulsar_py.client.producing.producer_config import ProducerConfig
from pulsar_py.client.producing.sequence_ids import SequenceIds
from pulsar_py.common.errors import (
    ChecksumError,
    NotAllowedError,
    ProducerBlockedQuotaExceededExceptionError,
    RemoteProtocolError,
    TopicTerminatedError,
    service_error,
)
from pulsar_py.common.failures import OnFailure
from pulsar_py.common.message_id import to_signed
from pulsar_py.proto.PulsarApi_pb2 import (
    CommandCloseProducer,
    CommandProducer,
    CommandProducerSuccess,
    KeyValue,
    ProducerAccessMode,
    Schema,
)
from pulsar_py.wire import client_commands
from pulsar_py.wire.command_codec import encode
from pulsar_py.wire.payload import ChecksumStatus, verify_checksum

if TYPE_CHECKING:
    from pulsar_py.client.brokers.client_cnx import ClientCnx
    from pulsar_py.client.brokers.client_context import ClientContext
    from pulsar_py.client.brokers.handlers import BrokerConnection

__all__ = ["ProducerSession"]

logger = logging.getLogger(__name__)


class ProducerSession:
    """Registers one producer, and handles the commands for it. Owned by its TopicProducer."""

    def __init__(
        self,
        context: ClientContext,
        topic: str,
        config: ProducerConfig,
        *,
        producer_id: int,
        encoder: EntryEncoder,
        outbox: Outbox,
        sequences: SequenceIds,
        schema: Schema | None,
        shared_name: str | None,
        on_failed: Callable[[Exception], None],
    ) -> None:
        """Nothing is sent before `connection.open`.

        Args:
            context: The client's shared parts.
            topic: Full name of the topic or partition.
            config: The producer's options.
            producer_id: An id from `context.new_producer_id`.
            encoder: Gets the producer's name and schema version.
            outbox: Gets the connection, and the receipts.
            sequences: Gets the last sequence id that the broker knows.
            schema: The schema that values are encoded with; None for bytes.
            shared_name: The name that the broker gave to the first partition's producer.
            on_failed: Called when the producer has ended and does not reconnect.
        """
        self._context = context
        self._topic = topic
        self._config = config
        self.producer_id = producer_id
        self._encoder = encoder
        self._outbox = outbox
        self._sequences = sequences
        self._schema = schema
        self._on_failed = on_failed
        # The name, given by the user or the broker; None before the broker's answer.
        self.producer_name = config.producer_name if shared_name is None else shared_name
        self._topic_epoch: int | None = None
        # Whether the broker has registered it at least once.
        self.is_registered_once = False
        self.connection = ConnectionHandler(
            context, topic, self, description=f"producer {producer_id} of {topic}"
        )
        self.connection.reconnects = config.reconnects

    async def opened(self, cnx: ClientCnx) -> None:
        """Register on `cnx`, and send all entries without receipt."""
        cnx.register_producer(self.producer_id, self)
        try:
            with OnFailure(partial(cnx.unregister_producer, self.producer_id)):
                answer = await self._register(cnx)
        except asyncio.CancelledError:
            # The broker may have registered the producer meanwhile, or may yet.
            self._say_close(cnx)
            raise
        except ProducerBlockedQuotaExceededExceptionError as error:
            self._outbox.fail_all(error)
            raise
        self._take(answer)
        if cnx.is_connected:
            self._outbox.attach(cnx)

    async def _register(self, cnx: ClientCnx) -> CommandProducerSuccess:
        request_id = cnx.next_request_id()
        answer = await cnx.request_producer(
            request_id,
            client_commands.producer(self._command(request_id)),
            timeout_seconds=self.connection.request_timeout_seconds,
            subject=self._topic,
        )
        return answer.producer_success

    def _command(self, request_id: int) -> CommandProducer:
        config = self._config
        command = CommandProducer(
            topic=self._topic,
            producer_id=self.producer_id,
            request_id=request_id,
            encrypted=bool(config.encryption_keys),
            metadata=[KeyValue(key=key, value=text) for key, text in config.properties.items()],
            schema=self._schema,
            epoch=self.connection.epoch,
            user_provided_producer_name=config.producer_name is not None,
            producer_access_mode=ProducerAccessMode.Value(config.access_mode.name),
            topic_epoch=self._topic_epoch,
            initial_subscription_name=config.initial_subscription_name,
        )
        if self.producer_name is not None:
            command.producer_name = self.producer_name
        return command

    def _take(self, answer: CommandProducerSuccess) -> None:
        self.is_registered_once = True
        self.producer_name = answer.producer_name
        if answer.HasField("topic_epoch"):
            self._topic_epoch = answer.topic_epoch
        self._encoder.registered(answer.producer_name, answer.schema_version)
        self._sequences.registered(to_signed(answer.last_sequence_id))

    def on_connection_failed(self, error: Exception) -> None:
        """The producer has ended: its handler gave up reconnecting."""
        self._outbox.detach()
        self._on_failed(error)

    # --- commands of the connection ------------------------------------------------------------

    def on_send_receipt(
        self, sequence_id: int, highest_sequence_id: int, ledger_id: int, entry_id: int
    ) -> None:
        """An entry is stored."""
        # Hot path: produce in `make bench-client`.
        try:
            self._outbox.on_receipt(sequence_id, highest_sequence_id, ledger_id, entry_id)
        except RemoteProtocolError as error:
            self._on_wrong_receipt(error)

    def on_lone_receipt(
        self, sequence_id: int, highest_sequence_id: int, ledger_id: int, entry_id: int
    ) -> None:
        """An entry is stored, and nothing else is known: its result is set now."""
        # Hot path: latency in `make bench-client`.
        try:
            self._outbox.on_lone_receipt(sequence_id, highest_sequence_id, ledger_id, entry_id)
        except RemoteProtocolError as error:
            self._on_wrong_receipt(error)

    def expects_receipt(
        self, sequence_id: int, highest_sequence_id: int, *, calls_back: bool
    ) -> bool:
        """Whether `on_lone_receipt` would take it, and ask nothing of the loop."""
        # Hot path: latency in `make bench-client`, blocking.
        return self._outbox.expects_receipt(sequence_id, highest_sequence_id, calls_back=calls_back)

    def on_send_receipts(
        self,
        sequence_id: int,
        highest_sequence_id: int,
        ledger_id: int,
        entry_id: int,
        count: int,
    ) -> None:
        """Entries in a row are stored."""
        # Hot path: produce unbatched in `make bench-client`.
        outbox = self._outbox
        done = outbox.on_receipts(sequence_id, ledger_id, entry_id, count)
        try:
            for each in range(done, count):
                highest = highest_sequence_id
                outbox.on_receipt(sequence_id + each, highest, ledger_id, entry_id + each)
        except RemoteProtocolError as error:
            self._on_wrong_receipt(error)

    def _on_wrong_receipt(self, error: RemoteProtocolError) -> None:
        cnx = self.connection.cnx
        if cnx is not None:
            cnx.close(f"broke the protocol: {self._topic}: {error}")

    def on_batch_end(self) -> None:
        """All that was received in one go has been handled."""
        self._outbox.settle()

    def on_send_error(self, sequence_id: int, code: int, text: str) -> None:
        """An entry was refused.

        A terminated topic ends the producer. An entry that the broker does not allow, or that is
        damaged here, fails alone. Otherwise the producer registers anew and sends again.
        """
        error = service_error(code, f"{self._topic}: {text}")
        logger.warning(
            "%s: send of sequence id %s refused: %s",
            self._topic,
            sequence_id,
            error,
            extra={"topic": self._topic, "sequence_id": sequence_id, "error": str(error)},
        )
        if isinstance(error, TopicTerminatedError):
            self.abandon()
            self._on_failed(error)
        elif isinstance(error, NotAllowedError) or (
            isinstance(error, ChecksumError) and not self._is_whole(sequence_id)
        ):
            self._outbox.refuse(sequence_id, error)
        else:
            self._leave()
            self.connection.reconnect()

    def _is_whole(self, sequence_id: int) -> bool:
        """Whether an entry's bytes here still fit their checksum: then the network changed them."""
        entry = self._outbox.find(sequence_id)
        if entry is None:
            return True
        frame = b"".join(entry.buffers)
        start = 8 + int.from_bytes(frame[4:8])
        return verify_checksum(frame[start:]) is ChecksumStatus.VALID

    def _leave(self) -> None:
        """Unregister the producer; the connection stays."""
        self._outbox.detach()
        cnx = self.connection.cnx
        if cnx is not None:
            cnx.unregister_producer(self.producer_id)
            self._say_close(cnx)

    def _say_close(self, cnx: ClientCnx) -> None:
        """Send CLOSE_PRODUCER without waiting for the answer."""
        cnx.send(self._close_command(cnx.next_request_id()))

    def _close_command(self, request_id: int) -> bytes:
        return encode(CommandCloseProducer(producer_id=self.producer_id, request_id=request_id))

    def on_close_producer(
        self, cnx: BrokerConnection, assigned_url: str | None, assigned_url_tls: str | None
    ) -> None:
        """The broker closed the producer: register again, at the broker that it names if any."""
        self._outbox.detach()
        self.connection.connection_closed(cnx, assigned_url, assigned_url_tls)

    def on_topic_migrated(
        self, cnx: BrokerConnection, service_url: str | None, service_url_tls: str | None
    ) -> None:
        """The topic lives in another cluster now."""
        del cnx
        self.connection.topic_migrated(service_url, service_url_tls)

    def on_connection_closed(self, cnx: BrokerConnection) -> None:
        """The connection is gone: register again, unless the client is closed."""
        self._outbox.detach()
        if self._context.closed_error is not None:
            self.connection.abandon()
            self._on_failed(self._context.closed_error)
        else:
            self.connection.connection_closed(cnx)

    def abandon(self) -> None:
        """Send CLOSE_PRODUCER without waiting for the answer, and reconnect no more."""
        self._leave()
        self.connection.abandon()

    async def close(self) -> None:
        """Send CLOSE_PRODUCER, wait for the answer, and reconnect no more."""
        cnx = self.connection.cnx
        try:
            if cnx is not None and cnx.is_connected:
                request_id = cnx.next_request_id()
                await cnx.request(
                    request_id,
                    self._close_command(request_id),
                    timeout_seconds=self._context.config.operation_timeout_seconds,
                    subject=self._topic,
                )
        finally:
            self._outbox.detach()
            if cnx is not None:
                cnx.unregister_producer(self.producer_id)
            await self.connection.close()
