"""Resource of policies: each value, the level that sets it, and the default.

    GET /admin/console/policies/{tenant}/{namespace}                          of a namespace
    GET /admin/console/topic/{domain}/{tenant}/{namespace}/{topic}/policies   of a topic

    answer      a list of {"word": as in the REST API's path, "value": what applies,
                "origin": "topic", "namespace", "broker" or "unset", "topic", "namespace", "broker":
                the value that each level has, "method": how it is set, "removable": whether DELETE
                removes it, "needs": the action that setting it needs}

Both tables of the REST API's policies are read, so that a policy that is new there is shown here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from pulsar_py.admin.http_messages import Request, Response, json_response
from pulsar_py.admin.policies import namespace_policy_table, topic_policy_table
from pulsar_py.admin.policies import policy_values as values
from pulsar_py.admin.resources.requests import namespace_of, topic_of
from pulsar_py.admin.resources.topic_access import NOT_THERE, require_namespace
from pulsar_py.admin.router import Route, get
from pulsar_py.console.answers import PolicyLine
from pulsar_py.console.callers import BASE
from pulsar_py.console.topic_pages import TOPIC
from pulsar_py.metadata.documents import NamespacePolicies
from pulsar_py.server.broker import BrokerService
from pulsar_py.server.security.actions import Action

__all__ = ["PolicyOrigins"]

Json = dict[str, Any]  # Any: JSON of many shapes

_QUOTA: Final = "backlogQuota"


class PolicyOrigins:
    """Shows policies of namespaces and topics."""

    def __init__(self, broker: BrokerService) -> None:
        self._broker = broker

    def routes(self) -> Iterable[Route]:
        """The routes of this resource."""
        return (
            get(
                BASE + "/policies/{tenant}/{namespace}",
                self.of_namespace,
                Action.READ_POLICY,
                answer=list[PolicyLine],
            ),
            get(
                TOPIC + "/policies",
                self.of_topic,
                Action.READ_TOPIC_POLICY,
                answer=list[PolicyLine],
            ),
        )

    async def of_namespace(self, request: Request) -> Response:
        """Return the policies of a namespace."""
        namespace = namespace_of(request)
        policies = await require_namespace(self._broker, namespace, NOT_THERE)
        document = policies.json
        defaults = self._defaults()
        lines = []
        for policy in namespace_policy_table.POLICIES:
            own = document.get(policy.key.json_name)
            if policy.is_per_cluster and own is not None:
                own = own.get(self._broker.config.clusterName)
            lines.append(
                {
                    **_levels(namespace=own, broker=defaults.get(policy.key.json_name)),
                    "word": policy.word,
                    "method": policy.set_method,
                    "removable": policy.can_be_deleted,
                    "needs": policy.write_needs.name,
                    "isInQuery": policy.read is values.true,
                }
            )
        own_quotas = document.get(NamespacePolicies.backlog_quotas.json_name) or {}
        for kind, default in topic_policy_table.quotas_of_broker(self._broker).items():
            levels = _levels(namespace=own_quotas.get(kind), broker=default)
            lines.append(_quota_line(kind, levels, Action.WRITE_POLICY))
        return json_response(sorted(lines, key=lambda each: each["word"].casefold()))

    def _defaults(self) -> Mapping[str, Any]:  # Any: JSON
        """The broker's values, by the key that the namespace's policy has."""
        names = {
            getattr(NamespacePolicies, name).json_name: name
            for name in dir(NamespacePolicies)
            if hasattr(getattr(NamespacePolicies, name), "json_name")
        }
        found: dict[str, Any] = {}
        for policy in topic_policy_table.POLICIES:
            if policy.default is None or policy.inherits is None:
                continue
            for json_name in names:
                if policy.inherits.get({json_name: True}) is not None:
                    found[json_name] = policy.default(self._broker)
        return found

    async def of_topic(self, request: Request) -> Response:
        """Return the policies of a topic, by its name without partition."""
        name = topic_of(request).base
        namespace = await require_namespace(self._broker, name.namespace_name)
        policies = await self._broker.resources.policies_of_topic(name)
        own: Mapping[str, Any] = policies.json if policies else {}
        lines = []
        for policy in topic_policy_table.POLICIES:
            if policy.default is None:
                levels = _levels(topic=policy.place.get(own))
            else:
                found = topic_policy_table.levels(policy, self._broker, own, namespace.json)
                levels = _levels(topic=found[0], namespace=found[1], broker=found[2])
                levels["value"] = policy.pick(found)
            lines.append(
                {
                    **levels,
                    "word": policy.word,
                    "method": policy.set_method,
                    "removable": policy.can_be_deleted,
                    "needs": Action.WRITE_TOPIC_POLICY.name,
                }
            )
        own_quotas = topic_policy_table.QUOTAS.get(own) or {}
        inherited = namespace.json.get(NamespacePolicies.backlog_quotas.json_name) or {}
        for kind, default in topic_policy_table.quotas_of_broker(self._broker).items():
            levels = _levels(
                topic=own_quotas.get(kind), namespace=inherited.get(kind), broker=default
            )
            lines.append(_quota_line(kind, levels, Action.WRITE_TOPIC_POLICY))
        return json_response(sorted(lines, key=lambda each: each["word"].casefold()))


def _levels(**levels: Any) -> Json:  # Any: JSON
    """Each level's value, the highest that is set, and which that is."""
    origin = next((level for level, value in levels.items() if value is not None), "unset")
    return {**levels, "value": levels.get(origin), "origin": origin}


def _quota_line(kind: str, levels: Json, needs: Action) -> Json:
    return {
        **levels,
        "word": _QUOTA,
        "kind": kind,
        "method": "POST",
        "removable": True,
        "needs": needs.name,
    }
