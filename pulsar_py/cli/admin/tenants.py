"""Commands about tenants, resource groups, resource quotas and bookies (declarations).

Source: CmdTenants, CmdResourceGroups, CmdResourceQuotas and CmdBookies in Pulsar's client tools.
"""

from __future__ import annotations

from typing import Any, Final

from pulsar_py.admin_client import clusters
from pulsar_py.admin_client.call import Call
from pulsar_py.admin_client.records import BookieInfo, ResourceGroup, ResourceQuota, TenantInfo
from pulsar_py.cli.admin import output
from pulsar_py.cli.admin.words import NOTHING, TENANT, Args, Group, Steps, Word, group

_ROLES: Final = "--admin-roles/-r:list --allowed-clusters/-c:list"
_RATES: Final = (
    "--msg-publish-rate/-mp:int --byte-publish-rate/-bp:long "
    "--msg-dispatch-rate/-md:int --byte-dispatch-rate/-bd:long"
)
_BUNDLE: Final = "--namespace/-n --bundle/-b"


def _create(a: Args) -> Steps:
    """Create a tenant, in all clusters if none are given."""
    allowed = a.allowed_clusters
    if not allowed:
        reply = yield clusters.clusters()
        allowed = [each for each in reply.json() if each != "global"]
    yield clusters.create_tenant(
        a.tenant, TenantInfo(admin_roles=a.admin_roles, allowed_clusters=allowed)
    )


def _update(a: Args) -> Steps:
    """Change what is given of a tenant; the rest stays."""
    roles, allowed = a.admin_roles, a.allowed_clusters
    if not roles or not allowed:
        reply = yield clusters.tenant(a.tenant)
        roles = roles or reply.json().get("adminRoles", [])
        allowed = allowed or reply.json().get("allowedClusters", [])
    yield clusters.update_tenant(a.tenant, TenantInfo(admin_roles=roles, allowed_clusters=allowed))


def _rates(a: Args) -> Call[None]:
    rates = ResourceGroup(
        publish_rate_in_msgs=a.msg_publish_rate,
        publish_rate_in_bytes=a.byte_publish_rate,
        dispatch_rate_in_msgs=a.msg_dispatch_rate,
        dispatch_rate_in_bytes=a.byte_dispatch_rate,
    )
    return clusters.set_resource_group(a.name, rates)


def _both(a: Args) -> bool:
    """Whether one bundle is meant.

    Raises:
        ValueError: Only a namespace or only a bundle is given.
    """
    if bool(a.namespace) != bool(a.bundle):
        raise ValueError("--namespace and --bundle belong together")
    return bool(a.bundle)


def _quota(a: Args) -> Call[Any]:
    return clusters.bundle_quota(a.namespace, a.bundle) if _both(a) else clusters.default_quota()


def _set_quota(a: Args) -> Call[None]:
    quota = ResourceQuota(
        msg_rate_in=float(a.msgRateIn),
        msg_rate_out=float(a.msgRateOut),
        bandwidth_in=float(a.bandwidthIn),
        bandwidth_out=float(a.bandwidthOut),
        memory=float(a.memory),
        dynamic=a.dynamic,
    )
    if _both(a):
        return clusters.set_bundle_quota(a.namespace, a.bundle, quota)
    return clusters.set_default_quota(quota)


# fmt: off
TENANTS: Final[Group] = group(
    Word("list", "List all tenants", NOTHING, "", lambda _: clusters.tenants()),
    Word("get", "Show a tenant's admins and clusters", TENANT, "",
         lambda a: clusters.tenant(a.tenant)),
    Word("create", "Create a tenant", TENANT, _ROLES, _create),
    Word("update", "Replace a tenant's admins or clusters", TENANT, _ROLES, _update),
    Word("delete", "Delete a tenant", TENANT, "-f/--force:flag",
         lambda a: clusters.delete_tenant(a.tenant, force=a.force)),
)

RESOURCEGROUPS: Final[Group] = group(
    Word("list", "List all resource groups", NOTHING, "", lambda _: clusters.resource_groups()),
    Word("get", "Show the rates of a resource group", "name", "",
         lambda a: clusters.resource_group(a.name)),
    Word("create", "Create a resource group", "name", _RATES, _rates),
    Word("update", "Change the rates of a resource group", "name", _RATES, _rates),
    Word("delete", "Delete a resource group", "name", "",
         lambda a: clusters.delete_resource_group(a.name)),
)

RESOURCE_QUOTAS: Final[Group] = group(
    Word("get", "Show what a bundle is expected to take", NOTHING, _BUNDLE, _quota),
    Word("set", "Set what a bundle is expected to take", NOTHING,
         f"{_BUNDLE} --msgRateIn/-mi:long! --msgRateOut/-mo:long! --bandwidthIn/-bi:long! "
         "--bandwidthOut/-bo:long! --memory/-mem:long! --dynamic/-d:flag", _set_quota),
    Word("reset-namespace-bundle-quota", "Go back to the default for a bundle", NOTHING,
         "--namespace/-n! --bundle/-b!",
         lambda a: clusters.reset_bundle_quota(a.namespace, a.bundle)),
)

BOOKIES: Final[Group] = group(
    Word("racks-placement", "Show the racks of all bookies", NOTHING, "",
         lambda _: clusters.bookie_racks()),
    Word("list-bookies", "Show all bookies", NOTHING, "", lambda _: clusters.bookies(),
         show=output.json_lines),
    Word("get-bookie-rack", "Show where a bookie stands", NOTHING, "-b/--bookie!",
         lambda a: clusters.bookie_rack(a.bookie)),
    Word("delete-bookie-rack", "Forget where a bookie stands", NOTHING, "-b/--bookie!",
         lambda a: clusters.delete_bookie_rack(a.bookie)),
    Word("set-bookie-rack", "Say where a bookie stands", NOTHING,
         "-g/--group=default -b/--bookie! -r/--rack! -hn/--hostname",
         lambda a: clusters.set_bookie_rack(
             a.bookie, BookieInfo(rack=a.rack, hostname=a.hostname), group=a.group)),
)
# fmt: on
