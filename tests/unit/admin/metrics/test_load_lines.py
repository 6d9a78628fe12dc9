"""Lines of brokers that have others."""

from __future__ import annotations

from pulsar_py.admin.metrics.load_lines import load_lines
from pulsar_py.common.names import TopicName
from tests.simulation.cluster_world import ClusterWorld, in_cluster, service
from tests.unit.admin.metrics.metric_pages import parsed

TOPIC = TopicName.parse("persistent://public/default/t")


@in_cluster("one", "two")
async def test_names_and_labels_are_apaches(world: ClusterWorld) -> None:
    one = service(world, "one")
    await one.namespaces.lookup(TOPIC, authoritative=True)
    await one.namespaces.unload_bundle(
        TOPIC.namespace_name, await one.namespaces.bundle_of(TOPIC), "moved to two:8080"
    )
    balancer = one.cluster_load.balancer
    balancer.moved_count, balancer.moved_from, balancer.split_count = 3, {"two:8080": 3}, 1
    metrics = parsed("".join(load_lines(one, "c")))
    labels = (("cluster", "c"), ("broker", "one"), ("metric", "loadBalancing"))
    for name in ("cpu", "memory", "directMemory", "bandwidth_in", "bandwidth_out"):
        assert list(metrics[f"pulsar_lb_{name}_usage"]) == [labels]
    assert list(metrics["pulsar_lb_unload_bundle_total"].values()) == [3]
    assert list(metrics["pulsar_lb_unload_broker_total"].values()) == [3]
    assert list(metrics["pulsar_lb_bundles_split_total"].values()) == [1]
    assert list(metrics["pulsar_py_cluster_brokers"].values()) == [2]
    assert list(metrics["pulsar_py_bundles_owned"].values()) == [1]  # the heartbeat
    (lost,) = metrics["pulsar_py_bundles_lost_total"]
    assert ("reason", "moved") in lost
