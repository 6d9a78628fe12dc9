"""Reads lists of clusters, and of shadow topics, out of requests (pure).

Source: NamespacesBase.internalSetNamespaceReplicationClusters, PersistentTopicsBase.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, Final

from pulsar_py.admin.declared import Body
from pulsar_py.admin.http_messages import HttpError, Request
from pulsar_py.admin.policies.policy_readers import reading
from pulsar_py.common.errors import InvalidTopicNameError
from pulsar_py.common.names import TopicName

CLUSTER_NAMES: Final = Body(list[str], "clusters")
_SHADOW_TOPICS: Final = Body(list[str], "shadow topics")


@reading(CLUSTER_NAMES)
def clusters(request: Request) -> Any:  # Any: JSON
    """The body as names of clusters, each once.

    Raises:
        HttpError: 412 if there is none.
    """
    names = CLUSTER_NAMES.of(request)
    if not names:
        raise HttpError(HTTPStatus.PRECONDITION_FAILED, "ClusterIds should not be null or empty")
    return sorted(set(names))


@reading(_SHADOW_TOPICS)
def shadow_topics(request: Request) -> Any:  # Any: JSON
    """The body as full names of persistent topics, each once.

    Raises:
        HttpError: 412 if there is none, or one is no name of a persistent topic.
    """
    names = _SHADOW_TOPICS.of(request)
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
