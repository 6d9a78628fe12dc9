"""Paths of handshakes, as `websocket_recordings.json` has them."""

from __future__ import annotations

import pytest

from pulsar_py.common.errors import InvalidTopicNameError
from pulsar_py.websocket.paths import BadWebSocketPathError, Endpoint, WebSocketPlace, place_of

PRODUCER, CONSUMER, READER = Endpoint.PRODUCER, Endpoint.CONSUMER, Endpoint.READER


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("/ws/v2/producer/persistent/a/b/c", WebSocketPlace(PRODUCER, "persistent://a/b/c")),
        ("/ws/v2/reader/non-persistent/a/b/c", WebSocketPlace(READER, "non-persistent://a/b/c")),
        ("/ws/v2/consumer/persistent/a/b/c/s", WebSocketPlace(CONSUMER, "persistent://a/b/c", "s")),
        (
            "/ws/v2/consumer/persistent/a/b/c/x%2Fy",
            WebSocketPlace(CONSUMER, "persistent://a/b/c", "x/y"),
        ),
        ("/ws/v2/producer/persistent/a/b/c%20d", WebSocketPlace(PRODUCER, "persistent://a/b/c d")),
        ("/ws/v2/producer/persistent/a/b/c/d", WebSocketPlace(PRODUCER, "persistent://a/b/c%2Fd")),
        ("/ws/v3/consumer/s", WebSocketPlace(CONSUMER, None, "s")),
    ],
)
def test_a_path_says_what_is_wanted(path: str, place: WebSocketPlace) -> None:
    assert place_of(path) == place


@pytest.mark.parametrize(
    "path",
    ["/ws", "/ws/v2", "/ws/v2/writer/persistent/a/b/c", "/ws/v3/producer/persistent/a/b/c",
     "/ws/v4/consumer/s", "/ws/producer/persistent/a/cluster/b/c"],
)  # fmt: skip
def test_other_paths_are_not_served(path: str) -> None:
    assert place_of(path) is None


@pytest.mark.parametrize(
    "path",
    [
        "/ws/v2/consumer/persistent/a/b/c/",
        "/ws/v2/consumer/persistent/a/b/c/s/t",
        "/ws/v3/consumer/",
    ],
)
def test_a_consumer_needs_one_last_part(path: str) -> None:
    with pytest.raises(BadWebSocketPathError):
        place_of(path)


@pytest.mark.parametrize(
    "rest",
    ["", "persistent/a", "persistent/a/b", "persistent/a/b/", "persistent//b/c", "other/a/b/c",
     "persistent/a/b/c%2Fd", "persistent/a/b/%20", "persistent/a/b/."],
)  # fmt: skip
def test_what_is_no_topic_is_refused(rest: str) -> None:
    with pytest.raises(InvalidTopicNameError):
        place_of(f"/ws/v2/producer/{rest}")
