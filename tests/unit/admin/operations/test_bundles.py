"""Splitting bundles over REST."""

from __future__ import annotations

from pulsar_py.common.names import TopicName
from pulsar_py.server.namespaces.bundles import Bundles, topic_hash
from tests.unit.admin.resources.conftest import Admin

NS = "/admin/v2/namespaces/public/default"
P = "/admin/v2/persistent/public/default"


async def with_topics(admin: Admin, count: int = 12) -> list[str]:
    for number in range(count):
        assert await admin.status("PUT", f"{P}/t{number}") == 204
    return [f"persistent://public/default/t{number}" for number in range(count)]


async def bundles(admin: Admin) -> Bundles:
    found = await admin.get(NS + "/bundles")
    return Bundles(tuple(int(text, 16) for text in found["boundaries"]))


async def test_topics_stay_loaded_and_are_found_in_the_new_bundles(admin: Admin) -> None:
    names = await with_topics(admin)
    bundle = (await bundles(admin)).bundle_of(names[0])
    kept = [admin.service.topics.loaded(TopicName.parse(name)) for name in names]
    assert await admin.status("PUT", f"{NS}/{bundle}/split") == 204
    after = await bundles(admin)
    assert len(after.names) == 5
    assert [admin.service.topics.loaded(TopicName.parse(name)) for name in names] == kept
    lookup = "/lookup/v2/topic/persistent/public/default/t0/bundle"
    answer = await admin.call("GET", lookup)
    assert answer.body.decode() == after.bundle_of(names[0]) != bundle


async def test_the_new_bundles_are_unloaded_on_request(admin: Admin) -> None:
    names = await with_topics(admin)
    bundle = (await bundles(admin)).bundle_of(names[0])
    assert await admin.status("PUT", f"{NS}/{bundle}/split?unload=true") == 204
    assert admin.service.topics.loaded(TopicName.parse(names[0])) is None
    assert await admin.status("GET", P + "/t0/stats") == 200


async def test_the_other_algorithms(admin: Admin) -> None:
    names = await with_topics(admin)
    path = NS + "/LARGEST/split?splitAlgorithmName="
    before = await bundles(admin)
    counts = [sum(before.bundle_of(name) == each for name in names) for each in before.names]
    assert await admin.status("PUT", path + "topic_count_equally_divide") == 204
    after = await bundles(admin)
    (place,) = set(after.boundaries) - set(before.boundaries)
    largest = before.bundle_at(place)
    assert counts[before.names.index(largest)] == max(counts)
    inside = [topic_hash(name) for name in names if before.bundle_of(name) == largest]
    assert sum(each < place for each in inside) == len(inside) // 2
    status, reason = await admin.reason("PUT", path + "flow_or_qps_equally_divide")
    assert (status, "nothing was changed" in reason) == (412, True)  # there is no traffic
    bundle = after.names[0]
    lower = int(bundle[:10], 16)
    path = f"{NS}/{bundle}/split?splitAlgorithmName=specified_positions_divide"
    assert await admin.status("PUT", path, [lower + 7, lower + 9]) == 204
    assert {lower + 7, lower + 9} <= set((await bundles(admin)).boundaries)
    assert await admin.status("PUT", path.replace(bundle, "HOT"), [1 << 40]) == 412
    assert await admin.status("PUT", path.replace(bundle, "HOT"), ["x"]) == 400


async def test_what_is_no_bundle_is_refused(admin: Admin) -> None:
    for text in ("no-range", "0x00000000_0x12345678", "0x0_0x40000000", "LARGEST"):
        assert (await admin.reason("PUT", f"{NS}/{text}/split"))[0] == 412
    path = NS + "/0x00000000_0x40000000/split?splitAlgorithmName=by_mood"
    assert "supported algorithms are" in (await admin.reason("PUT", path))[1]
    missing = NS.replace("default", "missing") + "/0x00000000_0x40000000/split"
    assert await admin.status("PUT", missing) == 404


async def test_hashes_of_topics_are_shown_by_bundle(admin: Admin) -> None:
    names = await with_topics(admin)
    bundle = (await bundles(admin)).bundle_of(names[0])
    path = f"{NS}/{bundle}/topicHashPositions"
    found = await admin.get(path)
    assert found["topicHashPositions"] == {
        name: topic_hash(name) for name in names if (await bundles(admin)).bundle_of(name) == bundle
    }
    found = await admin.get(f"{path}?topics={names[0]}&topics=persistent://public/default/none")
    assert found["topicHashPositions"] == {names[0]: topic_hash(names[0])}
