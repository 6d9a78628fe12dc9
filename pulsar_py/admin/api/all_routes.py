"""Lists all REST resources; a new one gets a line here."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from pulsar_py.admin.api.document_page import DocumentPage
from pulsar_py.admin.messages.backlog_analysis import BacklogAnalysis
from pulsar_py.admin.messages.readable_messages import ReadableMessages
from pulsar_py.admin.messages.stored_messages import StoredMessages
from pulsar_py.admin.metrics.page import Metrics
from pulsar_py.admin.operations.absent_services import AbsentServices
from pulsar_py.admin.operations.backlogs import Backlogs
from pulsar_py.admin.operations.backups import Backups
from pulsar_py.admin.operations.bookie_racks import BookieRacks
from pulsar_py.admin.operations.broker_stats import BrokerStats
from pulsar_py.admin.operations.bundles import BundleOperations
from pulsar_py.admin.operations.cluster_load import ClusterLoadView
from pulsar_py.admin.operations.cluster_relations import ClusterRelations
from pulsar_py.admin.operations.internal_info import InternalInfo
from pulsar_py.admin.operations.isolation_policies import IsolationPolicies
from pulsar_py.admin.operations.log_settings import LogSettings
from pulsar_py.admin.operations.namespace_clusters import NamespaceClusters
from pulsar_py.admin.operations.offloading import Offloading
from pulsar_py.admin.operations.resource_quotas import ResourceQuotas
from pulsar_py.admin.operations.symptoms import Symptoms
from pulsar_py.admin.policies.namespace_attributes import NamespaceAttributes
from pulsar_py.admin.policies.namespace_policies import NamespacePolicyResource
from pulsar_py.admin.policies.topic_policies import TopicPolicyResource
from pulsar_py.admin.resources.brokers import Brokers
from pulsar_py.admin.resources.clusters import Clusters
from pulsar_py.admin.resources.dynamic_configuration import DynamicSettings
from pulsar_py.admin.resources.lookup import Lookup
from pulsar_py.admin.resources.namespaces import Namespaces
from pulsar_py.admin.resources.partitioned_topics import PartitionedTopicResource
from pulsar_py.admin.resources.permissions import Permissions
from pulsar_py.admin.resources.persistence import Persistence
from pulsar_py.admin.resources.properties import Properties
from pulsar_py.admin.resources.resource_groups import ResourceGroups
from pulsar_py.admin.resources.schemas import Schemas
from pulsar_py.admin.resources.subscriptions import Subscriptions
from pulsar_py.admin.resources.tenants import Tenants
from pulsar_py.admin.resources.topic_stats import TopicStatistics
from pulsar_py.admin.resources.topics import Topics
from pulsar_py.admin.resources.trimming import TopicTrimming
from pulsar_py.admin.resources.vip_status import VipStatus
from pulsar_py.admin.router import Route
from pulsar_py.server.broker import BrokerService


def all_routes(broker: BrokerService) -> Iterable[Route]:
    """The routes of all resources of one broker."""
    resources = (
        Brokers(broker),
        DynamicSettings(broker),
        BrokerStats(broker),
        ClusterLoadView(broker),
        Symptoms(broker),
        LogSettings(),
        Backups(broker),
        Clusters(broker),
        ClusterRelations(broker),
        BookieRacks(broker),
        IsolationPolicies(broker),
        Tenants(broker),
        Namespaces(broker),
        BundleOperations(broker),
        NamespacePolicyResource(broker),
        Permissions(broker),
        Persistence(broker),
        NamespaceAttributes(broker),
        Topics(broker),
        PartitionedTopicResource(broker),
        TopicStatistics(broker),
        TopicPolicyResource(broker),
        TopicTrimming(broker),
        Subscriptions(broker),
        StoredMessages(broker),
        ReadableMessages(broker),
        BacklogAnalysis(broker),
        Schemas(broker),
        Lookup(broker),
        Metrics(broker),
        VipStatus(broker),
        Properties(broker),
        ResourceGroups(broker),
        ResourceQuotas(broker),
        Backlogs(broker),
        NamespaceClusters(broker),
        Offloading(broker),
        InternalInfo(broker),
        AbsentServices(broker),
    )
    routes = [*chain.from_iterable(resource.routes() for resource in resources)]
    return [*routes, *DocumentPage(routes).routes()]
