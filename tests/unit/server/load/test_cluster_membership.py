from __future__ import annotations

from pulsar_py.metadata import paths
from pulsar_py.server.load.broker_report import BrokerReport
from tests.simulation.brokers_world import SESSION_SECONDS
from tests.simulation.cluster_world import ClusterWorld, in_cluster, service, until


@in_cluster("one", "two", "three")
async def test_brokers_know_each_other_and_one_leads(world: ClusterWorld) -> None:
    ids = {f"{name}:8080" for name in world.nodes}
    members = [service(world, name).membership for name in world.nodes]
    await until(lambda: all(set(member.directory.brokers) == ids for member in members), seconds=2)
    assert [member.is_leader for member in members].count(True) == 1
    assert len({member.leader_id for member in members}) == 1


@in_cluster("one", "two")
async def test_a_registration_is_what_apache_brokers_read(world: ClusterWorld) -> None:
    metadata = world.nodes["one"].metadata
    await metadata.sync("/")
    stored = await metadata.get(paths.broker("two:8080"))
    assert stored is not None
    assert stored.is_ephemeral
    report = BrokerReport.decode("two:8080", stored.value)
    assert report.pulsar_url == "pulsar://two:6650"
    assert report.web_url == "http://two:8080"
    assert report.load_manager == (
        "org.apache.pulsar.broker.loadbalance.impl.ModularLoadManagerImpl"
    )
    heartbeat = await metadata.get("/namespace/pulsar/two:8080/0x00000000_0xffffffff")
    assert heartbeat is not None
    assert b'"nativeUrl":"pulsar://two:6650"' in heartbeat.value


@in_cluster("one", "two", "three")
async def test_a_killed_leader_is_followed_by_another_one(world: ClusterWorld) -> None:
    leader = next(name for name in world.nodes if service(world, name).membership.is_leader)
    old = service(world, leader).membership
    world.kill(leader)
    others = [service(world, name).membership for name in world.nodes if name != leader]
    await until(
        lambda: sum(member.is_leader for member in others) == 1, seconds=SESSION_SECONDS + 1
    )
    assert not old.is_leader  # by its own clock
    await until(lambda: len({member.leader_id for member in others}) == 1, seconds=1)
    await until(
        lambda: all(f"{leader}:8080" not in member.directory.brokers for member in others),
        seconds=1,
    )


@in_cluster("one", "two")
async def test_who_leaves_is_not_chosen_and_chooses_others(world: ClusterWorld) -> None:
    one, two = (service(world, name).membership for name in ("one", "two"))
    await one.leave()
    await until(lambda: two.is_leader, seconds=2)
    for member in (one, two):
        choice = await member.choose("public/default/0x00000000_0x10000000", authoritative=False)
        assert choice is not None
        assert choice.report.broker_id == "two:8080"
    choice = await one.choose("public/default/0x00000000_0x10000000", authoritative=True)
    assert choice is not None
    assert not choice.is_self
