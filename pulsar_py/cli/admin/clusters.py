"""Commands about clusters and isolation policies (declarations).

Source: CmdClusters and CmdNamespaceIsolationPolicy in Pulsar's client tools.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from pulsar_py.admin_client import brokers, clusters, namespaces, topics
from pulsar_py.admin_client.records import (
    ClusterData,
    ClusterUrl,
    FailureDomain,
    NamespaceIsolationData,
)
from pulsar_py.cli.admin import output
from pulsar_py.cli.admin.words import CLUSTER, NOTHING, Args, Group, Steps, Word, group
from pulsar_py.common.foreign_json import parse_json

_DATA: Final = (
    "--url --url-secure --broker-url --broker-url-secure --proxy-url --auth-plugin "
    "--auth-parameters --proxy-protocol:choice(SNI) --tls-enable:flag --tls-allow-insecure:flag "
    "--tls-enable-keystore:flag --tls-trust-store-type --tls-trust-store --tls-trust-store-pwd "
    "--tls-key-store-type --tls-key-store --tls-key-store-pwd --tls-trust-certs-filepath "
    "--tls-key-filepath --tls-certs-filepath --tls-factory-plugin --tls-factory-plugin-params "
    "--listener-name --cluster-config-file"
)
_DOMAINS: Final = ("persistent", "non-persistent")
_FIELDS: Final = {
    "service_url": "url",
    "service_url_tls": "url_secure",
    "broker_service_url": "broker_url",
    "broker_service_url_tls": "broker_url_secure",
    "proxy_service_url": "proxy_url",
    "authentication_plugin": "auth_plugin",
    "authentication_parameters": "auth_parameters",
    "proxy_protocol": "proxy_protocol",
    "broker_client_tls_enabled": "tls_enable",
    "tls_allow_insecure_connection": "tls_allow_insecure",
    "broker_client_tls_enabled_with_key_store": "tls_enable_keystore",
    "broker_client_tls_trust_store_type": "tls_trust_store_type",
    "broker_client_tls_trust_store": "tls_trust_store",
    "broker_client_tls_trust_store_password": "tls_trust_store_pwd",
    "broker_client_tls_key_store_type": "tls_key_store_type",
    "broker_client_tls_key_store": "tls_key_store",
    "broker_client_tls_key_store_password": "tls_key_store_pwd",
    "broker_client_trust_certs_file_path": "tls_trust_certs_filepath",
    "broker_client_key_file_path": "tls_key_filepath",
    "broker_client_certificate_file_path": "tls_certs_filepath",
    "broker_client_ssl_factory_plugin": "tls_factory_plugin",
    "broker_client_ssl_factory_plugin_params": "tls_factory_plugin_params",
    "listener_name": "listener_name",
}
"""The fields of a cluster, and the options that set them."""


def _data(a: Args) -> ClusterData:
    """The cluster's data from a file of JSON, and from options, which override it.

    Raises:
        ValueError: The file can't be read, or is no JSON object.
    """
    if a.cluster_config_file:
        try:
            found: Any = parse_json(Path(a.cluster_config_file).read_text())
            base = {each: getattr(ClusterData.of(found), each) for each in _FIELDS}
        except (OSError, ValueError, AttributeError, TypeError) as error:
            raise ValueError(f"{a.cluster_config_file}: expected a JSON object: {error}") from None
    else:
        base = {}
    given = {field: getattr(a, option) for field, option in _FIELDS.items()}
    return ClusterData(**base | {field: each for field, each in given.items() if each})


def _list(a: Args) -> Steps:
    """List clusters; `--current` marks the broker's own with a `*`."""
    reply = yield clusters.clusters()
    names = [str(each) for each in reply.json()]
    settings = yield brokers.runtime_settings()
    own = (settings.json() or {}).get("clusterName")
    return [f"{each}(*)" if a.current and each == own else each for each in names]


def _delete(a: Args) -> Steps:
    """Delete a cluster; `--all` first deletes all tenants with namespaces and topics."""
    if a.all:
        tenants = yield clusters.tenants()
        for tenant in tenants.json():
            spaces = yield namespaces.namespaces(tenant)
            for space in spaces.json():
                yield from _empty(space)
                yield namespaces.delete_namespace(space, force=True)
            yield clusters.delete_tenant(tenant)
    yield clusters.delete_cluster(a.cluster)


def _empty(space: str) -> Steps:
    """Delete all topics of a namespace."""
    partitioned: dict[str, None] = {}
    plain: dict[str, None] = {}
    for domain in _DOMAINS:
        reply = yield topics.partitioned_topics(space, domain=domain)
        partitioned |= dict.fromkeys(reply.json())
    for topic in partitioned:
        yield topics.delete_partitioned_topic(topic, force=True)
    for domain in _DOMAINS:
        reply = yield topics.topics(space, domain=domain)
        plain |= dict.fromkeys(reply.json())
    for topic in plain:
        yield topics.delete_topic(topic, force=True)


def _migrate(a: Args) -> Any:  # Any: a call
    target = ClusterUrl(
        service_url=a.service_url,
        service_url_tls=a.service_url_secure,
        broker_service_url=a.broker_url,
        broker_service_url_tls=a.broker_url_secure,
    )
    return clusters.set_migration(a.cluster, target, migrated=a.migrated)


def _set_domain(a: Args) -> Any:  # Any: a call
    return clusters.set_failure_domain(
        a.cluster, a.domain_name, FailureDomain(brokers=a.broker_list or None)
    )


def _isolate(a: Args) -> Any:  # Any: a call
    """The isolation policy, whose one type needs both of its parameters.

    Raises:
        ValueError: They are not, or the type is unknown.
    """
    if a.auto_failover_policy_type != "min_available":
        raise ValueError("--auto-failover-policy-type: expected min_available")
    given = a.auto_failover_policy_params
    if set(given) != {"min_limit", "usage_threshold"}:
        raise ValueError("--auto-failover-policy-params: expected min_limit=N,usage_threshold=N")
    data = NamespaceIsolationData(
        namespaces=a.namespaces,
        primary=a.primary,
        secondary=a.secondary,
        auto_failover_policy={"policy_type": "min_available", "parameters": given},
        unload_scope=a.unload_scope,
    )
    return clusters.set_isolation_policy(a.cluster, a.policy, data)


_show_domains: Final = output.mapping_of("FailureDomainImpl", {"brokers": "brokers"})


def _show_policies(value: dict[str, Any]) -> str:
    shown = {}
    for name, each in value.items():
        failover = each.get("auto_failover_policy") or {}
        kind, given = failover.get("policy_type"), output.java_text(failover.get("parameters"))
        parts = (f"{key}={output.java_text(each.get(key))}"
                 for key in ("namespaces", "primary", "secondary"))  # fmt: skip
        shown[name] = (
            f"NamespaceIsolationDataImpl({', '.join(parts)}, autoFailoverPolicy="
            f"AutoFailoverPolicyDataImpl(policyType={kind}, parameters={given}), "
            f"unloadScope={output.java_text(each.get('unload_scope'))})"
        )
    return output.mapping(shown)


# fmt: off
CLUSTERS: Final[Group] = group(
    Word("get", "Show a cluster's addresses", CLUSTER, "", lambda a: clusters.cluster(a.cluster)),
    Word("create", "Create a cluster", CLUSTER, _DATA,
         lambda a: clusters.create_cluster(a.cluster, _data(a))),
    Word("update", "Replace a cluster's addresses", CLUSTER, _DATA,
         lambda a: clusters.update_cluster(a.cluster, _data(a))),
    Word("delete", "Delete a cluster", CLUSTER, "-a/--all:flag", _delete),
    Word("list", "List all clusters", NOTHING, "-c/--current:flag", _list),
    Word("update-peer-clusters", "Replace a cluster's peers", CLUSTER, "--peer-clusters:list!",
         lambda a: clusters.set_peer_clusters(a.cluster, a.peer_clusters)),
    Word("get-cluster-migration", "Show whether a cluster has moved", CLUSTER, "",
         lambda a: clusters.migration(a.cluster)),
    Word("update-cluster-migration", "Tell clients where a cluster has moved to", CLUSTER,
         "--migrated:flag --service-url --service-url-secure --broker-url --broker-url-secure",
         _migrate),
    Word("get-peer-clusters", "List a cluster's peers", CLUSTER, "",
         lambda a: clusters.peer_clusters(a.cluster), show=output.json_lines),
    Word("get-failure-domain", "Show a failure domain", CLUSTER, "--domain-name!",
         lambda a: clusters.failure_domain(a.cluster, a.domain_name)),
    Word("create-failure-domain", "Create a failure domain", CLUSTER,
         "--domain-name! --broker-list:list", _set_domain),
    Word("update-failure-domain", "Replace the brokers of a failure domain", CLUSTER,
         "--domain-name! --broker-list:list", _set_domain),
    Word("delete-failure-domain", "Delete a failure domain", CLUSTER, "--domain-name!",
         lambda a: clusters.delete_failure_domain(a.cluster, a.domain_name)),
    Word("list-failure-domains", "Show all failure domains", CLUSTER, "",
         lambda a: clusters.failure_domains(a.cluster), show=_show_domains),
)

NS_ISOLATION_POLICY: Final[Group] = group(
    Word("set", "Create or replace an isolation policy", "cluster policy",
         "--namespaces:list! --primary:list! --secondary:list --auto-failover-policy-type! "
         "--auto-failover-policy-params:pairs! "
         "--unload-scope:choice(all_matching,none,changed)", _isolate),
    Word("get", "Show an isolation policy", "cluster policy", "",
         lambda a: clusters.isolation_policy(a.cluster, a.policy)),
    Word("list", "Show all isolation policies of a cluster", CLUSTER, "",
         lambda a: clusters.isolation_policies(a.cluster), show=_show_policies),
    Word("delete", "Delete an isolation policy", "cluster policy", "",
         lambda a: clusters.delete_isolation_policy(a.cluster, a.policy)),
    Word("brokers", "Show all brokers with their isolation policies", CLUSTER, "",
         lambda a: clusters.isolated_brokers(a.cluster)),
    Word("broker", "Show a broker with its isolation policies", CLUSTER, "--broker!",
         lambda a: clusters.isolated_broker(a.cluster, a.broker)),
)
# fmt: on
