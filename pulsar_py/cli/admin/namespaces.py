"""Commands of `pulsar-py admin namespaces` (declarations); policies are in `namespace_policies`.

Source: CmdNamespaces in Pulsar's client tools.
"""

from __future__ import annotations

from typing import Final

from pulsar_py.admin_client import namespaces
from pulsar_py.admin_client.call import Call
from pulsar_py.cli.admin import namespace_policies, output
from pulsar_py.cli.admin.words import NAMESPACE, NOTHING, TENANT, Args, Group, Steps, Word, group


def _split(a: Args) -> Steps:
    if not (a.bundle or a.bundle_type):
        raise ValueError("Must pass one of the params: --bundle / --bundle-type")
    bundle = a.bundle or a.bundle_type.upper()
    yield namespaces.split_bundle(
        a.namespace,
        bundle,
        unload=a.unload,
        algorithm=a.split_algorithm_name,
        boundaries=a.split_boundaries,
    )


def _positions(a: Args) -> Call[object]:
    if not a.bundle:
        raise ValueError("Must pass one of the params: --bundle")
    return namespaces.topic_positions(a.namespace, a.bundle, a.topic_list)


def _of_cluster(a: Args) -> Steps:
    """The namespaces whose policies name the cluster."""
    tenant, separator, cluster = a.params.partition("/")
    if not separator:
        raise ValueError("expected TENANT/CLUSTER")
    reply = yield namespaces.namespaces(tenant)
    found = []
    for name in reply.json():
        policies = yield namespaces.namespace_policies(name)
        if cluster in policies.json().get("replication_clusters", ()):
            found.append(name)
    return found


def _unload(a: Args) -> Call[None]:
    if a.destinationBroker and not a.bundle:
        raise ValueError("--destinationBroker needs --bundle")
    return namespaces.unload_namespace(a.namespace, a.bundle, destination=a.destinationBroker)


# fmt: off
NAMESPACES: Final[Group] = group(
    Word("list", "List the namespaces of a tenant", TENANT, "",
         lambda a: namespaces.namespaces(a.tenant)),
    Word("list-cluster", "List the namespaces of a tenant in a cluster", "params", "", _of_cluster,
         is_hidden=True),
    Word("topics", "List the topics of a namespace", NAMESPACE,
         "-m/--mode:choice(PERSISTENT,NON_PERSISTENT,ALL) -ist/--include-system-topic:flag",
         lambda a: namespaces.topics_of_namespace(
             a.namespace, mode=a.mode, system_topics=a.include_system_topic)),
    Word("bundles", "Show the bundles of a namespace", NAMESPACE, "",
         lambda a: namespaces.bundles(a.namespace)),
    Word("destinations", "List the topics of a namespace", NAMESPACE, "",
         lambda a: namespaces.topics_of_namespace(a.namespace), is_hidden=True),
    Word("policies", "Show all policies of a namespace", NAMESPACE, "",
         lambda a: namespaces.namespace_policies(a.namespace)),
    Word("create", "Create a namespace", NAMESPACE, "--clusters/-c:list --bundles/-b:int=0",
         lambda a: namespaces.create_namespace(
             a.namespace, clusters=a.clusters, bundles_count=a.bundles)),
    Word("delete", "Delete a namespace", NAMESPACE, "-f/--force:flag",
         lambda a: namespaces.delete_namespace(a.namespace, force=a.force)),
    Word("permissions", "Show what roles may do in a namespace", NAMESPACE, "",
         lambda a: namespaces.permissions(a.namespace), show=output.mapping),
    Word("grant-permission", "Let a role do something in a namespace", NAMESPACE,
         "--role! --actions:list!",
         lambda a: namespaces.grant_permission(a.namespace, a.role, a.actions)),
    Word("revoke-permission", "Take all rights on a namespace from a role", NAMESPACE, "--role!",
         lambda a: namespaces.revoke_permission(a.namespace, a.role)),
    Word("subscription-permission", "Show the roles that may use subscriptions", NAMESPACE, "",
         lambda a: namespaces.subscription_permissions(a.namespace), show=output.mapping),
    Word("grant-subscription-permission", "Let only these roles use a subscription", NAMESPACE,
         "-s/--subscription! -rs/--roles:list!",
         lambda a: namespaces.grant_subscription_permission(a.namespace, a.subscription, a.roles)),
    Word("revoke-subscription-permission", "Take a subscription from a role", NAMESPACE,
         "-s/--subscription! -r/--role!",
         lambda a: namespaces.revoke_subscription_permission(
             a.namespace, a.subscription, a.role)),
    Word("get-anti-affinity-namespaces", "List the namespaces of a group that is kept apart",
         NOTHING, "--tenant/-p --cluster/-c! --group/-g!",
         lambda a: namespaces.anti_affinity_namespaces(a.cluster, a.group, tenant=a.tenant)),
    Word("unload", "Close topics, so that they are served anew", NAMESPACE,
         "--bundle/-b --destinationBroker/-d", _unload),
    Word("split-bundle", "Divide a bundle", NAMESPACE,
         "--bundle/-b --bundle-type/-bt:choice(LARGEST,HOT) --unload/-u:flag "
         "--split-algorithm-name/-san --split-boundaries/-sb:longs", _split),
    Word("get-topic-positions", "Show the hashes of topics in a bundle", NAMESPACE,
         "--bundle/-b --topic-list/-tl:list", _positions),
    Word("clear-backlog", "Acknowledge the backlog of all topics", NAMESPACE,
         "--sub/-s --bundle/-b --force/-force/-f:flag",
         lambda a: namespaces.clear_backlog(a.namespace, subscription=a.sub, bundle=a.bundle)),
    Word("unsubscribe", "Delete a subscription on all topics", NAMESPACE, "--sub/-s! --bundle/-b",
         lambda a: namespaces.unsubscribe(a.namespace, a.sub, bundle=a.bundle)),
    Word("set-property", "Set a property", NAMESPACE, "--key/-k! --value/-v!",
         lambda a: namespaces.set_property(a.namespace, a.key, a.value)),
    Word("get-property", "Show a property", NAMESPACE, "--key/-k!",
         lambda a: namespaces.property_of(a.namespace, a.key), show=output.json_lines),
    Word("remove-property", "Remove a property", NAMESPACE, "--key/-k!",
         lambda a: namespaces.remove_property(a.namespace, a.key), show=output.json_lines),
    Word("set-properties", "Set properties; others stay", NAMESPACE, "--properties/-p:map!",
         lambda a: namespaces.set_properties(a.namespace, a.properties)),
    Word("get-properties", "Show all properties", NAMESPACE, "",
         lambda a: namespaces.properties(a.namespace), show=output.json_lines),
    Word("clear-properties", "Remove all properties", NAMESPACE, "",
         lambda a: namespaces.clear_properties(a.namespace)),
    Word("update-migration-state", "Say whether a namespace has moved", NAMESPACE,
         "--migrated:flag",
         lambda a: namespaces.set_migrated(a.namespace, migrated=a.migrated)),
    *namespace_policies.words(),
)
# fmt: on
