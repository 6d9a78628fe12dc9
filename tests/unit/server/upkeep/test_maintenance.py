from __future__ import annotations

from pulsar_py.common.errors import ServiceError
from pulsar_py.common.loops.tasks import TaskOwner
from pulsar_py.server.topics.topic import Topic
from pulsar_py.server.upkeep.maintenance import MAX_CONCURRENT_TOPICS, Chore, Maintenance
from tests.unit.server.topics.rig import Rig, name_of


async def test_chores_run_at_their_intervals(rig: Rig) -> None:
    await rig.topic("t")
    log: list[str] = []

    def note(name: str, interval: float) -> Chore:
        async def run(topic: Topic) -> None:
            log.append(f"{name} {rig.clock.monotonic_seconds():g} {topic.name.local_name}")

        return Chore(name, interval, run)

    start = rig.clock.monotonic_seconds()
    assert start == 0
    maintenance = Maintenance(
        [note("a", 10), note("b", 25), note("never", 0)],
        rig.broker.topics.topics.values,
        rig.clock,
    )
    owner = TaskOwner("test")
    owner.spawn(maintenance.run(), "maintenance")
    await rig.clock.sleep(31)
    await owner.close()
    assert log == ["a 10 t", "a 20 t", "b 25 t", "a 30 t"]


async def test_one_topics_failure_does_not_stop_the_others(rig: Rig) -> None:
    await rig.topic("a")
    await rig.topic(name_of("b", domain="non-persistent"))
    served: list[str] = []

    async def run(topic: Topic) -> None:
        served.append(topic.name.local_name)
        raise ServiceError("no")

    chore = Chore("chore", 1, run)
    maintenance = Maintenance([chore], rig.broker.topics.topics.values, rig.clock)
    await maintenance.run_chore(chore)
    assert served == ["a", "b"]


async def test_closing_topics_are_left_alone(rig: Rig) -> None:
    topic = await rig.topic("a")
    await topic.close()
    served: list[str] = []

    async def run(topic: Topic) -> None:
        served.append(topic.name.local_name)

    chore = Chore("chore", 1, run)
    await Maintenance([chore], lambda: [topic], rig.clock).run_chore(chore)
    assert served == []


async def test_a_topic_whose_chore_waits_holds_up_no_other(rig: Rig) -> None:
    topics = [await rig.topic(f"t{number}") for number in range(MAX_CONCURRENT_TOPICS + 10)]
    under_way, most = 0, 0

    async def run(topic: Topic) -> None:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await rig.clock.sleep(60 if topic is topics[0] else 1)
        under_way -= 1

    chore = Chore("chore", 1, run)
    start = rig.clock.monotonic_seconds()
    await Maintenance([chore], lambda: topics, rig.clock).run_chore(chore)
    assert rig.clock.monotonic_seconds() - start == 60
    assert most == MAX_CONCURRENT_TOPICS
