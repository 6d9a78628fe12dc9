"""Reads names of tenants, namespaces and topics out of paths; raises `HttpError` (pure).

Source: AdminResource in Pulsar's broker.
"""

from __future__ import annotations

from http import HTTPStatus

from pulsar_py.admin.http_messages import HttpError, Request
from pulsar_py.common.errors import InvalidTopicNameError
from pulsar_py.common.names import NamespaceName, TopicName, is_valid_entity


def tenant_of(request: Request) -> str:
    """The tenant in the path.

    Raises:
        HttpError: 412 if it is not a valid name.
    """
    tenant = request.path["tenant"]
    if not is_valid_entity(tenant):
        raise HttpError(HTTPStatus.PRECONDITION_FAILED, "Tenant name is not valid")
    return tenant


def namespace_of(request: Request) -> NamespaceName:
    """The namespace in the path.

    Raises:
        HttpError: 412 if a part of it is not a valid name.
    """
    tenant = tenant_of(request)
    try:
        return NamespaceName(tenant, request.path["namespace"])
    except InvalidTopicNameError:
        raise HttpError(HTTPStatus.PRECONDITION_FAILED, "Namespace name is not valid") from None


def topic_of(request: Request) -> TopicName:
    """The topic in the path.

    Raises:
        HttpError: 412 if it is not a valid name.
    """
    namespace = namespace_of(request)
    domain = request.path.get("domain", "persistent")  # paths of schemas have none
    try:
        return namespace.topic(request.path["topic"], domain=domain)
    except InvalidTopicNameError:
        raise HttpError(HTTPStatus.PRECONDITION_FAILED, "Topic name is not valid") from None
