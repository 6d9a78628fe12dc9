"""Parses the path of a handshake: producer, consumer or reader, topic, subscription (pure).

    /ws/v2/producer/{domain}/{tenant}/{namespace}/{topic}
    /ws/v2/consumer/{domain}/{tenant}/{namespace}/{topic}/{subscription}
    /ws/v2/reader/{domain}/{tenant}/{namespace}/{topic}
    /ws/v3/consumer/{subscription}?topics=… or ?topicsPattern=…

Segments are decoded one by one. A further slash of a producer's or reader's path belongs to the
name of its topic, which holds it encoded.

Source: AbstractWebSocketHandler, WebSocketConsumerServlet in Pulsar.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final
from urllib.parse import quote, unquote_plus

from pulsar_py.common.errors import InvalidTopicNameError
from pulsar_py.common.names import TopicName

__all__ = ["BadWebSocketPathError", "Endpoint", "WebSocketPlace", "place_of"]

_TOPIC_PARTS: Final = 4
"""Domain, tenant, namespace, topic."""


class Endpoint(Enum):
    """The kinds of WebSocket clients."""

    PRODUCER = "producer"
    CONSUMER = "consumer"
    READER = "reader"


class BadWebSocketPathError(Exception):
    """A path has too many segments, or an empty one; answered with 400."""


@dataclass(frozen=True, slots=True)
class WebSocketPlace:
    """An endpoint with its topic, None where parameters name the topics, and its subscription."""

    endpoint: Endpoint
    topic: str | None
    subscription: str | None = None


def place_of(raw_path: str) -> WebSocketPlace | None:
    """What an undecoded path without query means; None for one that is not served.

    Raises:
        BadWebSocketPathError: The path of a consumer has a slash too many, or no subscription; or
            it has a NUL, which Jetty refuses.
        InvalidTopicNameError: Parts are missing, or are no valid name.
    """
    if "%00" in raw_path:
        raise BadWebSocketPathError("a path has no NUL")
    version, _, rest = raw_path.removeprefix("/ws/").partition("/")
    kind, has_more, rest = rest.partition("/")
    if not has_more:
        return None
    if (version, kind) == ("v3", "consumer"):
        return WebSocketPlace(Endpoint.CONSUMER, None, _subscription(rest))
    if version != "v2" or kind not in {each.value for each in Endpoint}:
        return None
    endpoint = Endpoint(kind)
    if endpoint is not Endpoint.CONSUMER:
        return WebSocketPlace(endpoint, _topic(rest.split("/")))
    parts = rest.split("/")
    if len(parts) > _TOPIC_PARTS + 1:
        raise BadWebSocketPathError("a consumer's path ends in /{topic}/{subscription}")
    topic = _topic(parts[:_TOPIC_PARTS])
    return WebSocketPlace(endpoint, topic, _subscription("/".join(parts[_TOPIC_PARTS:])))


def _topic(parts: list[str]) -> str:
    head = parts[: _TOPIC_PARTS - 1]
    local = [unquote_plus(part) for part in parts[_TOPIC_PARTS - 1 :]]
    if len(local) > 1:
        local = ["%2F".join(quote(part) for part in local)]
    if local in (["."], [".."]):
        raise InvalidTopicNameError(f"{local[0]!r} is no key of a metadata store, so no topic")
    domain, _, rest = "/".join([unquote_plus(part) for part in head] + local).partition("/")
    return str(TopicName.parse(f"{domain}://{rest}"))


def _subscription(text: str) -> str:
    if not text or "/" in text:
        raise BadWebSocketPathError("expected the subscription as last part of the path")
    return unquote_plus(text)
