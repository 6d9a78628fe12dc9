"""Reads lists of clusters, and of shadow topics, out of requests (pure).

Source: NamespacesBase.internalSetNamespaceReplicationClusters, PersistentTopicsBase.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from pulsar_py.admin.http_messages import HttpError, Request
from pulsar_py.admin.resources.requests import read_texts
from pulsar_py.common.errors import InvalidTopicNameError
from pulsar_py.common.names import TopicName


def clusters(request: Request) -> Any:  # Any: JSON
    """The body as names of clusters, each once.

    Raises:
        HttpError: 412 if there is none.
    """
    names = read_texts(request.json(), "clusters")
    if not names:
        raise HttpError(HTTPStatus.PRECONDITION_FAILED, "ClusterIds should not be null or empty")
    return sorted(set(names))


def shadow_topics(request: Request) -> Any:  # Any: JSON
    """The body as full names of persistent topics, each once.

    Raises:
        HttpError: 412 if there is none, or one is no name of a persistent topic.
    """
    names = read_texts(request.json(), "shadow topics")
    if not names:
        raise HttpError(
            HTTPStatus.PRECONDITION_FAILED,
            "Cannot specify empty shadow topics, please use remove command instead.",
        )
    return sorted({_persistent(name) for name in names})


def _persistent(text: str) -> str:
    try:
        name = TopicName.parse(text)
    except InvalidTopicNameError as error:
        raise HttpError(HTTPStatus.PRECONDITION_FAILED, str(error)) from None
    if not name.is_persistent:
        raise HttpError(
            HTTPStatus.PRECONDITION_FAILED,
            f"Only persistent topic can be set as shadow topic: {text:.200}",
        )
    return str(name)
