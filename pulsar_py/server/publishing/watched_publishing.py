"""Calls interceptors for producers and for the messages that they publish.

A topic uses these only while an interceptor listens.
"""

from __future__ import annotations

from collections.abc import Sequence

from pulsar_py.managed_ledger.log.append_news import AppendListener
from pulsar_py.server.hooks.broker_interceptor import ClientInfo, ProducerInfo
from pulsar_py.server.hooks.interceptors import Interceptors
from pulsar_py.server.publishing.producer import Append, Producer, PublishContext


def producer_info(producer: Producer) -> ProducerInfo:
    """What interceptors see of a producer."""
    connection = producer.connection
    return ProducerInfo(
        topic=str(producer.topic.name),
        name=producer.name,
        producer_id=producer.producer_id,
        client=ClientInfo(address=connection.remote_address, version=connection.client_version),
        metadata=producer.request.metadata,
    )


def watched_append(append: Append, interceptors: Interceptors) -> Append:
    """A function that tells of each entry before it goes to `append`."""

    def publish(data: bytes, context: PublishContext) -> None:
        interceptors.tell("on_message_publish", producer_info(context[0]), data)
        append(data, context)

    return publish


class WatchedAppends:
    """An `AppendListener` before another, which tells of each entry that was stored."""

    def __init__(
        self, listener: AppendListener[PublishContext], interceptors: Interceptors
    ) -> None:
        self._listener = listener
        self._interceptors = interceptors

    def on_appended(
        self, ledger_id: int, first_entry_id: int, contexts: Sequence[PublishContext]
    ) -> None:
        """Pass the group on, then tell of each entry."""
        self._listener.on_appended(ledger_id, first_entry_id, contexts)
        for index, context in enumerate(contexts):
            self._interceptors.tell(
                "message_produced", producer_info(context[0]), ledger_id, first_entry_id + index
            )

    def on_append_failed(self, contexts: Sequence[PublishContext], error: Exception) -> None:
        """Pass it on."""
        self._listener.on_append_failed(contexts, error)

    def on_fenced(self, error: Exception) -> None:
        """Pass it on."""
        self._listener.on_fenced(error)
