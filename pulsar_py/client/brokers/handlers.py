"""The interfaces by which ClientCnx calls producers, consumers and topic watchers.

All are plain calls from the connection's `buffer_updated`; they must not raise and must not block.
`on_batch_end` comes once after all frames of one piece of received data, to each handler that got
any of them: it does the work that is due once a group and not once an entry (resolve receipts, send
permits, wake receivers).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from pulsar_py.common.buffer import EntryBytes
from pulsar_py.proto.PulsarApi_pb2 import CommandMessage

if TYPE_CHECKING:
    from pulsar_py.client.messages.message import EntryKey, Message

__all__ = ["BrokerConnection", "ConsumerHandler", "ProducerHandler", "TopicWatchHandler"]


class BrokerConnection(Protocol):
    """A connection, as its handlers see it: they compare it with theirs, and pass it on."""

    @property
    def is_connected(self) -> bool:
        """Whether it can be used."""


class ProducerHandler(Protocol):
    """A producer, as its connection sees it."""

    def on_send_receipt(
        self, sequence_id: int, highest_sequence_id: int, ledger_id: int, entry_id: int
    ) -> None:
        """An entry is stored. Ids are signed: ledger and entry -1 for a duplicate.

        `highest_sequence_id` is 0 or -1 where the SEND had none.
        """

    def on_lone_receipt(
        self, sequence_id: int, highest_sequence_id: int, ledger_id: int, entry_id: int
    ) -> None:
        """As `on_send_receipt`, of the only receipt in what was received: with `on_batch_end`."""

    def expects_receipt(
        self, sequence_id: int, highest_sequence_id: int, *, calls_back: bool
    ) -> bool:
        """Whether that of `on_lone_receipt` would be the next one, and ask nothing of the loop.

        `calls_back` says whether it may call what waits for the message.
        """

    def on_send_receipts(
        self,
        sequence_id: int,
        highest_sequence_id: int,
        ledger_id: int,
        entry_id: int,
        count: int,
    ) -> None:
        """As `on_send_receipt` for `count` entries, with sequence and entry ids in a row."""

    def on_send_error(self, sequence_id: int, code: int, text: str) -> None:
        """An entry was refused; `code` is a ServerError (`errors.service_error` makes it one)."""

    def on_close_producer(
        self, cnx: BrokerConnection, assigned_url: str | None, assigned_url_tls: str | None
    ) -> None:
        """The broker closed the producer, which is no longer registered with `cnx`.

        The usual answer: `self._connection.connection_closed(cnx, assigned_url, assigned_url_tls)`.
        """

    def on_topic_migrated(
        self, cnx: BrokerConnection, service_url: str | None, service_url_tls: str | None
    ) -> None:
        """The topic lives in another cluster now; CLOSE_PRODUCER follows.

        The usual answer: `self._connection.topic_migrated(service_url, service_url_tls)`.
        """

    def on_connection_closed(self, cnx: BrokerConnection) -> None:
        """The connection is gone, and the producer is no longer registered with it.

        The usual answer: `self._connection.connection_closed(cnx)`.
        """

    def on_batch_end(self) -> None:
        """All that was received in one go has been handled."""


class ConsumerHandler(Protocol):
    """A consumer, as its connection sees it."""

    def on_message(
        self,
        message: CommandMessage,
        headers_and_payload: EntryBytes,
        key: EntryKey | None = None,
    ) -> None:
        """An entry came. `message` can be kept: nobody changes it.

        It may be the command of an entry before that is like this one but for its id: `key` is the
        id then, ledger and entry, and None where it is that of `message`.

        The bytes are its own, too, for as long as it refers to them or to a slice of them.
        """

    @property
    def is_awaited(self) -> bool:
        """Whether a thread waits for the next message, which `on_batch_end` wakes."""

    def takes_in_turn(self, message: CommandMessage) -> bool:
        """Whether a thread that has the loop's turn may call `take_in_turn` for that message."""

    def take_in_turn(
        self, message: CommandMessage, headers_and_payload: EntryBytes, key: EntryKey | None
    ) -> list[Message]:
        """As `on_message`, which asks nothing of the loop, and takes the messages of the entry.

        Has the loop to do anything for them then, `has_to_go_on`, and it should call `go_on`.
        """

    @property
    def has_to_go_on(self) -> bool:
        """Whether a `take_in_turn` has left something to do."""

    def go_on(self) -> None:
        """Do that; called by the loop."""

    def on_active_consumer_change(self, *, is_active: bool) -> None:
        """A Failover consumer became the active one, or ceased to be it."""

    def on_reached_end_of_topic(self) -> None:
        """The topic was terminated and nothing is left."""

    def on_close_consumer(
        self, cnx: BrokerConnection, assigned_url: str | None, assigned_url_tls: str | None
    ) -> None:
        """The broker closed the consumer; as `ProducerHandler.on_close_producer`."""

    def on_topic_migrated(
        self, cnx: BrokerConnection, service_url: str | None, service_url_tls: str | None
    ) -> None:
        """The topic lives in another cluster now; as `ProducerHandler.on_topic_migrated`."""

    def on_connection_closed(self, cnx: BrokerConnection) -> None:
        """The connection is gone; as `ProducerHandler.on_connection_closed`."""

    def on_batch_end(self) -> None:
        """All that was received in one go has been handled."""


class TopicWatchHandler(Protocol):
    """A watcher of a namespace's topics, as its connection sees it."""

    def on_topic_list_update(
        self, new_topics: Sequence[str], deleted_topics: Sequence[str], topics_hash: str
    ) -> None:
        """Topics that match came or went; the hash is that of the whole list after it."""

    def on_connection_closed(self, cnx: BrokerConnection) -> None:
        """The connection is gone, and the watch with it."""
