"""`PolicyLogs`: policy events at another kind of broker, read and written as a client (edge).

The client connects with the addresses of the own broker, which sends it where the topic is served,
and proves the broker's own role by the settings `brokerClient...`.

Source: PulsarService.getClient, SystemTopicClientBase in Pulsar's broker.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from pulsar_py.common.errors import ServiceNotReadyError
from pulsar_py.common.message_id import EARLIEST_MESSAGE_ID, MessageId
from pulsar_py.common.names import TopicName
from pulsar_py.server.broker_settings import call_settings
from pulsar_py.server.change_events.event_log import FOLLOWED_PROPERTY
from pulsar_py.server.change_events.event_messages import EventMessage
from pulsar_py.server.elsewhere import topic_path
from pulsar_py.server.policies.policy_events import (
    SCHEMA_PROPERTIES,
    PolicyEvent,
    encode_event,
    schema_text,
)

if TYPE_CHECKING:
    from random import Random

    from pulsar_py.client.client import Client
    from pulsar_py.client.producing.producer import Producer
    from pulsar_py.client.reading.reader import Reader
    from pulsar_py.server.broker import BrokerService

MESSAGES_A_READ: Final = 100
NO_AUTHENTICATION: Final = "AuthenticationDisabled"
"""The end of the name of the plugin that proves nothing."""


class PolicyLogs:
    """The logs that one broker has open; they share a client, which ends with the last of them."""

    def __init__(self, service: BrokerService, chance: Random | None = None) -> None:
        """Nothing is connected before the first log is opened; `chance` is for virtual time."""
        self._service = service
        self._chance = chance
        self._client: Client | None = None  # None without logs
        self._logs_count = 0

    @asynccontextmanager
    async def open(self, name: TopicName) -> AsyncIterator[PolicyLog]:
        """Read a log from its first event on; it is made if there is none.

        Raises:
            ConfigurationError: The broker's own credentials can't be read.
            ServiceError, ClientError: It can't be opened now.
        """
        client = self._client = self._client or self._new_client()
        self._logs_count += 1
        try:
            reader = await client.create_reader(
                str(name), EARLIEST_MESSAGE_ID, is_read_compacted=True
            )
            log = PolicyLog(client, reader, self._service, name)
            try:
                yield log
            finally:
                await log.close()
        finally:
            self._logs_count -= 1
            if not self._logs_count:
                self._client = None
                await client.close()

    def _new_client(self) -> Client:
        from pulsar_py.client.client import Client  # noqa: PLC0415 - at first use
        from pulsar_py.client.security.authentication_plugins import (  # noqa: PLC0415 - at first use
            authentication_from_plugin,
        )

        settings = call_settings(self._service.config)
        addresses = self._service.addresses.default
        urls = [addresses.broker_url, addresses.broker_url_tls]
        if settings.uses_tls:
            urls.reverse()
        url = urls[0] or urls[1]
        assert url is not None, "a broker has a port of its protocol"
        authentication = None
        if settings.plugin and not settings.plugin.endswith(NO_AUTHENTICATION):
            authentication = authentication_from_plugin(settings.plugin, settings.parameters)
        return Client(
            url,
            authentication,
            clock=self._service.clock,
            chance=self._chance,
            stats_interval_in_seconds=0,
            tls_trust_certs_file_path=settings.trust_path or None,
            tls_certificate_file_path=settings.certificate_path or None,
            tls_private_key_file_path=settings.key_path or None,
            tls_validate_hostname=settings.verifies_hostname,
        )


class PolicyLog:
    """One log at the broker that serves it; made by `PolicyLogs`."""

    def __init__(
        self, client: Client, reader: Reader[bytes], service: BrokerService, name: TopicName
    ) -> None:
        """Take an open reader over."""
        self._client = client
        self._reader = reader
        self._producer: Producer[bytes] | None = None  # None before the first change
        self._service = service
        self._name = name
        self._properties_path = f"{topic_path(name)}/properties"
        self._first: EventMessage | None = None  # what `wait` has waited for
        self.place = (-1, -1)
        """Of the last message that was read."""

    async def close(self) -> None:
        """End it at the broker that serves it."""
        if self._producer is not None:
            await self._producer.close()
        await self._reader.close()

    async def read(self) -> list[EventMessage]:
        """The next messages, at the log's end none.

        Raises:
            ServiceError, ClientError: They can't be read.
        """
        found: list[EventMessage] = []
        while len(found) < MESSAGES_A_READ:
            message, self._first = self._first, None
            if message is None:
                if not await self._reader.has_message_available():
                    break
                message = await self._next()
            if message.key:  # else it is no event
                found.append(message)
        return found

    async def wait(self) -> None:
        """Return when there are more.

        Raises:
            ServiceError, ClientError: There will be none.
        """
        if self._first is None:
            self._first = await self._next()

    async def _next(self) -> EventMessage:
        message = await self._reader.read_next()
        self.place = _place(message.message_id())
        payload = b"" if message.has_null_value() else message.data()
        version = message.schema_version() or b""
        return EventMessage(message.key() or "", payload, version, message.publish_timestamp())

    async def append(self, event: PolicyEvent) -> tuple[int, int]:
        """Append an event; it is durable when this returns, with its place.

        Raises:
            ServiceError, ClientError: It is not stored, or that is unknown.
        """
        if self._producer is None:
            self._producer = await self._new_producer()
        cluster = self._service.config.clusterName
        message_id = await self._producer.send(
            None if event.document is None else encode_event(event, cluster),
            partition_key=event.key,
            replication_clusters=None if event.is_global else [cluster],
        )
        return _place(message_id)

    async def _new_producer(self) -> Producer[bytes]:
        from pulsar_py.schema.encoded_schema import EncodedSchema  # noqa: PLC0415 - at first use
        from pulsar_py.schema.schema_info import SchemaInfo, SchemaType  # noqa: PLC0415 - as above

        info = SchemaInfo(SchemaType.AVRO, "", schema_text().encode(), SCHEMA_PROPERTIES)
        return await self._client.create_producer(
            str(self._name), schema=EncodedSchema(info), batching_enabled=False
        )

    async def is_followed(self) -> bool:
        """Whether the copies have followed this log before.

        Raises:
            PulsarError: The broker that serves it does not say.
        """
        answer = await self._service.elsewhere.ask_owner(self._name, "GET", self._properties_path)
        if answer is None:
            raise ServiceNotReadyError(f"{self._name} is served here by now")
        properties = answer.json()
        return isinstance(properties, dict) and FOLLOWED_PROPERTY in properties

    async def set_followed(self) -> None:
        """Note durably that from now on the copies follow this log.

        Raises:
            PulsarError: The broker that serves it refused.
        """
        body = json.dumps({FOLLOWED_PROPERTY: "true"}).encode()
        await self._service.elsewhere.ask_owner(self._name, "PUT", self._properties_path, body)


def _place(message_id: MessageId) -> tuple[int, int]:
    return message_id.ledger_id, message_id.entry_id
