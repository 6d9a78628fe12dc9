"""Every setting with an effect reaches a component: changing it changes what one of them is given.

What the components do with it is for their own tests; what a client sees of it, for
tests/integration/test_settings.py.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

import pytest

from pulsar_py.server import broker
from pulsar_py.server.config import BrokerConfig
from pulsar_py.server.namespaces.lookup import BrokerAddresses
from pulsar_py.server.settings import Setting, Value
from pulsar_py.standalone import bookie_settings, http_limits, local_addresses

LISTENERS = "one:pulsar://one.example:6650,two:pulsar://two.example:6650"

READ_WHERE_USED = {
    "advertisedAddress": "Broker._advertised_host",
    "backlogQuotaCheckIntervalInSeconds": "BrokerService._chores",
    "bindAddress": "cli.standalone",
    "brokerDeduplicationSnapshotFrequencyInSeconds": "BrokerService._chores",
    "brokerDeleteInactivePartitionedTopicMetadataEnabled": "BrokerService._delete_if_inactive",
    "brokerServicePort": "cli.standalone",
    "brokerShutdownTimeoutMs": "BrokerService.close",
    "clusterName": "ProducerNames",
    "defaultNumberOfNamespaceBundles": "NamespaceService and the admin resource",
    "forceDeleteNamespaceAllowed": "the admin resource",
    "forceDeleteTenantAllowed": "the admin resource",
    "managedLedgerCacheEvictionIntervalMs": "ManagedLedgerOpener",
    "managedLedgerCacheEvictionTimeThresholdMillis": "ManagedLedgerOpener",
    "managedLedgerCacheEvictionWatermark": "ManagedLedgerOpener",
    "managedLedgerCacheSizeMB": "ManagedLedgerOpener",
    "maxNamespacesPerTenant": "the admin resource",
    "maxTenants": "the admin resource",
    "maxUnackedMessagesPerBroker": "BrokerUnackedLimit",
    "maxUnackedMessagesPerSubscriptionOnBrokerBlocked": "BrokerUnackedLimit",
    "messageExpiryCheckIntervalInMinutes": "BrokerService._chores",
    "retentionCheckIntervalInSeconds": "BrokerService._chores",
    "subscriptionExpiryCheckIntervalInMinutes": "BrokerService._chores",
    "webServicePort": "cli.standalone",
}
"""Settings that no settings object of a component holds, and who reads them instead."""

OTHER_VALUES: dict[str, Value] = {
    "advertisedListeners": LISTENERS.replace("one", "uno"),
    "internalListenerName": "two",
    "brokerEntryMetadataInterceptors": frozenset({"x.AppendIndexMetadataInterceptor"}),
    "subscriptionTypesEnabled": frozenset({"Shared"}),
}


def other_value(declaration: Setting) -> Value:
    """Some value that the setting can have and does not."""
    if declaration.name in OTHER_VALUES:
        return OTHER_VALUES[declaration.name]
    default = declaration.default
    if isinstance(default, bool):
        return not default
    if isinstance(default, Enum):
        return next(member for member in type(default) if member is not default)
    if isinstance(default, float):
        return 0.5 if default != 0.5 else 0.25
    if isinstance(default, int):
        return default + 8
    return 7 if default is None else "other"


def handed_on(config: BrokerConfig) -> list[Any]:
    """All that components are given, in their units."""
    bound = BrokerAddresses(broker_url="pulsar://localhost:6650")
    return [
        broker.connection_settings(config),
        broker.registry_settings(config),
        broker.topic_settings(config),
        broker.dispatch_settings(config),
        broker.managed_ledger_config(config),
        bookie_settings(config, is_volatile=False),
        http_limits(config),
        local_addresses(config, bound, is_loopback=True),
    ]


BASE = BrokerConfig(
    advertisedListeners=LISTENERS, internalListenerName="one", backlogQuotaDefaultLimitBytes=9
)


@pytest.mark.parametrize("name", sorted(BrokerConfig.declared().keys() - READ_WHERE_USED.keys()))
def test_changing_it_changes_what_a_component_is_given(name: str) -> None:
    base = BASE
    if name == "advertisedListeners":
        base = base.replace(internalListenerName="")
    changed = base.replace(**{name: other_value(BrokerConfig.declared()[name])})
    assert handed_on(changed) != handed_on(base)


@pytest.mark.parametrize("name", READ_WHERE_USED)
def test_the_exceptions_are_needed(name: str) -> None:
    changed = BASE.replace(**{name: other_value(BrokerConfig.declared()[name])})
    assert handed_on(changed) == handed_on(BASE), "it is handed on: take it off the list"
