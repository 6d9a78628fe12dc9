"""Backlogs and subscriptions of whole namespaces."""

from __future__ import annotations

from pulsar_py.common.names import TopicName
from pulsar_py.server.topics.persistent import PersistentTopic
from tests.unit.admin.resources.conftest import Admin

NS = "/admin/v2/namespaces/public/default"
P = "/admin/v2/persistent/public/default"


async def with_backlog(admin: Admin, *names: str) -> dict[str, PersistentTopic]:
    found = {}
    for name in names:
        for subscription in ("s", "r"):
            await admin.call("PUT", f"{P}/{name}/subscription/{subscription}", "earliest")
        topic = admin.service.topics.loaded(TopicName.parse(f"persistent://public/default/{name}"))
        assert isinstance(topic, PersistentTopic)
        await topic.ledger.append_and_wait(b"message")
        found[name] = topic
    return found


def backlogs(topic: PersistentTopic) -> dict[str, int]:
    return {name: each.stats().backlog_entries for name, each in topic.subscriptions.items()}


async def test_the_backlog_of_a_namespace_is_cleared_as_a_whole_or_by_name(admin: Admin) -> None:
    topics = await with_backlog(admin, "a", "b")
    assert await admin.status("POST", NS + "/clearBacklog/s") == 204
    assert [backlogs(each) for each in topics.values()] == [{"s": 0, "r": 1}] * 2
    assert await admin.status("POST", NS + "/clearBacklog") == 204
    assert [backlogs(each) for each in topics.values()] == [{"s": 0, "r": 0}] * 2


async def test_what_a_compaction_has_not_read_is_cleared_by_its_name_alone(admin: Admin) -> None:
    topic = (await with_backlog(admin, "a"))["a"]
    await topic.open_compaction_cursor()
    assert await admin.status("POST", NS + "/clearBacklog") == 204
    assert backlogs(topic) == {"s": 0, "r": 0, "__compaction": 1}
    assert await admin.status("POST", NS + "/clearBacklog/__compaction") == 204
    assert backlogs(topic)["__compaction"] == 0


async def test_only_topics_of_the_bundle_are_touched(admin: Admin) -> None:
    topics = await with_backlog(admin, *(f"t{number}" for number in range(8)))
    bundles = {
        name: await admin.service.namespaces.bundle_of(topic.name) for name, topic in topics.items()
    }
    wanted = bundles["t0"]
    assert await admin.status("POST", f"{NS}/{wanted}/clearBacklog/s") == 204
    for name, topic in topics.items():
        assert backlogs(topic)["s"] == (0 if bundles[name] == wanted else 1)
    assert await admin.status("POST", f"{NS}/{wanted}/unsubscribe/r") == 204
    for name, topic in topics.items():
        assert ("r" in topic.subscriptions) is (bundles[name] != wanted)
    assert await admin.status("POST", NS + "/no-range/clearBacklog") == 412


async def test_a_missing_subscription_or_namespace(admin: Admin) -> None:
    topics = await with_backlog(admin, "a")
    assert await admin.status("POST", NS + "/unsubscribe/none") == 204
    assert list(topics["a"].subscriptions) == ["s", "r"]
    assert await admin.status("POST", NS.replace("default", "none") + "/clearBacklog") == 404


async def test_a_subscription_is_replicated_or_not(admin: Admin) -> None:
    await with_backlog(admin, "a")
    path = P + "/a/subscription/s/replicatedSubscriptionStatus"
    topic = "persistent://public/default/a"
    assert await admin.get(path) == {topic: False}
    assert await admin.status("POST", path, True) == 204
    assert await admin.get(path) == {topic: True}
    await admin.call("PUT", P + "/a/unload")
    assert await admin.get(path) == {topic: True}  # it is stored
    assert await admin.status("POST", path) == 400
    assert await admin.status("GET", path.replace("/s/", "/none/")) == 404
    assert await admin.status("GET", path.replace("/persistent/", "/non-persistent/")) == 405
