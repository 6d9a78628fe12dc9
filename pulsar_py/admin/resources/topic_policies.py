"""REST resource of topics' policies: a table with the path, the stored key and reader of each.

Source: PersistentTopics in Pulsar's broker.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

from pulsar_py.admin.http_messages import (
    NO_CONTENT,
    HttpError,
    Request,
    Response,
    json_response,
)
from pulsar_py.admin.resources import policy_values as values
from pulsar_py.admin.resources.requests import topic_of
from pulsar_py.admin.resources.topic_access import require_namespace, topic_not_found
from pulsar_py.admin.resources.topics import TOPIC
from pulsar_py.admin.router import Route, delete, get, post
from pulsar_py.common.names import TopicName
from pulsar_py.metadata.documents import TopicPolicies
from pulsar_py.metadata.json_document import Key
from pulsar_py.server.broker import BrokerService
from pulsar_py.server.security.actions import Action


@dataclass(frozen=True, slots=True)
class Policy:
    """One policy: its word in the path, its key in the stored document, the reader of a body."""

    word: str
    key: Key[Any]  # Any: the table has keys of many types
    read: values.Reader


POLICIES: Final = (Policy("maxMessageSize", TopicPolicies.max_message_bytes, values.not_negative),)


class TopicPolicyResource:
    """Reads, sets and removes single policies of topics, by the name without partition."""

    def __init__(self, broker: BrokerService) -> None:
        self._broker = broker
        self._policies = broker.resources.topic_policies

    def routes(self) -> Iterable[Route]:
        """The routes of this resource."""
        for policy in POLICIES:
            template = f"{TOPIC}/{policy.word}"
            yield get(template, self._getter(policy), Action.READ_TOPIC_POLICY)
            yield post(template, self._setter(policy), Action.WRITE_TOPIC_POLICY)
            yield delete(template, self._remover(policy), Action.WRITE_TOPIC_POLICY)

    def _getter(self, policy: Policy) -> Callable[[Request], Awaitable[Response]]:
        async def show(request: Request) -> Response:
            name = await self._topic(request)
            policies = await self._policies.get(name)
            value = None if policies is None else policies.json.get(policy.key.json_name)
            return NO_CONTENT if value is None else json_response(value)

        return show

    def _setter(self, policy: Policy) -> Callable[[Request], Awaitable[Response]]:
        async def store(request: Request) -> Response:
            name = await self._topic(request)
            value = policy.read(request)
            limit = self._broker.config.maxMessageSize
            if policy.word == "maxMessageSize" and value > limit:
                raise HttpError(
                    HTTPStatus.PRECONDITION_FAILED,
                    f"topic-level maxMessageSize must be at most the broker's {limit}",
                )
            await self._store(name, policy.key.json_name, value)
            return NO_CONTENT

        return store

    def _remover(self, policy: Policy) -> Callable[[Request], Awaitable[Response]]:
        async def remove(request: Request) -> Response:
            await self._store(await self._topic(request), policy.key.json_name, None)
            return NO_CONTENT

        return remove

    async def _topic(self, request: Request) -> TopicName:
        name = topic_of(request)
        await require_namespace(self._broker, name.namespace_name)
        if name.is_partition:
            raise HttpError(
                HTTPStatus.PRECONDITION_FAILED,
                "Not allowed to set/get topic policy for a partition",
            )
        topics = self._broker.topics
        if not await topics.partitioned.count(name) and not await topics.exists(name):
            raise topic_not_found(name)
        return name

    async def _store(self, name: TopicName, key: str, value: Any) -> None:  # Any: JSON
        def change(policies: TopicPolicies | None) -> TopicPolicies:
            known = {} if policies is None else policies.json
            document = {other: each for other, each in known.items() if other != key}
            if value is not None:
                document[key] = value
            return TopicPolicies(document)

        await self._policies.update_or_create(name, change)
