"""Policies with their origins; whatever is shown can be set again as it is shown."""

from __future__ import annotations

from typing import Any

from tests.unit.console.conftest import TOPIC, ConsoleCalls

NAMESPACE = "/admin/v2/namespaces/public/default"
OF_NAMESPACE = "/admin/console/policies/public/default"
OF_TOPIC = f"{TOPIC}/t/policies"
IN_QUERY = {"messageTTL", "subscriptionExpirationTime"}


async def line(console: ConsoleCalls, path: str, word: str, kind: str | None = None) -> Any:
    (found,) = [
        each
        for each in await console.get(path)
        if each["word"] == word and each.get("kind") == kind
    ]
    return found


async def test_a_policy_tells_where_its_value_comes_from(console: ConsoleCalls) -> None:
    await console.call("PUT", "/admin/v2/persistent/public/default/t")
    found = await line(console, OF_TOPIC, "maxProducers")
    assert (found["origin"], found["value"], found["broker"]) == ("broker", 0, 0)
    await console.call("POST", f"{NAMESPACE}/maxProducersPerTopic", 7)
    found = await line(console, OF_TOPIC, "maxProducers")
    assert (found["origin"], found["value"], found["namespace"]) == ("namespace", 7, 7)
    own = "/admin/v2/persistent/public/default/t/maxProducers"
    await console.call("POST", own, 3)
    found = await line(console, OF_TOPIC, "maxProducers")
    assert (found["origin"], found["value"], found["topic"]) == ("topic", 3, 3)
    await console.call("DELETE", own)
    assert (await line(console, OF_TOPIC, "maxProducers"))["origin"] == "namespace"


async def test_a_namespaces_policy_has_the_brokers_default_beside_it(
    console: ConsoleCalls,
) -> None:
    found = await line(console, OF_NAMESPACE, "retention")
    default = {"retentionTimeInMinutes": 0, "retentionSizeInMB": 0}
    assert (found["origin"], found["value"]) == ("broker", default)
    wanted = {"retentionTimeInMinutes": 5, "retentionSizeInMB": 6}
    await console.call("POST", f"{NAMESPACE}/retention", wanted)
    found = await line(console, OF_NAMESPACE, "retention")
    assert (found["origin"], found["value"], found["broker"]) == ("namespace", wanted, default)


async def test_backlog_quotas_are_shown_by_their_kind(console: ConsoleCalls) -> None:
    await console.call("PUT", "/admin/v2/persistent/public/default/t")
    quota = {"limitSize": 5, "limitTime": -1, "policy": "consumer_backlog_eviction"}
    path = f"{NAMESPACE}/backlogQuota?backlogQuotaType=destination_storage"
    assert await console.status("POST", path, quota) == 204
    for where in (OF_NAMESPACE, OF_TOPIC):
        found = await line(console, where, "backlogQuota", "destination_storage")
        assert found["origin"] == "namespace"
        assert found["value"]["limitSize"] == 5
        assert (await line(console, where, "backlogQuota", "message_age"))["origin"] == "broker"


async def test_each_policy_can_be_set_as_the_page_does_it(console: ConsoleCalls) -> None:
    """By its word, its method and the value that is shown, where there is one."""
    await console.call("PUT", "/admin/v2/persistent/public/default/t")
    failed = []
    bases = ((OF_NAMESPACE, NAMESPACE), (OF_TOPIC, "/admin/v2/persistent/public/default/t"))
    for where, base in bases:
        lines = await console.get(where)
        assert len(lines) > 20
        for each in lines:
            value = each.get("value")
            if value is None or value == {"entryFilterNames": ""}:  # an empty one is refused
                continue
            path, body = f"{base}/{each['word']}", value
            if "kind" in each:
                path += f"?backlogQuotaType={each['kind']}"
            if base.endswith("/t") and each["word"] in IN_QUERY:
                path, body = f"{path}?{each['word']}={value}", ...
            response = await console.call(each["method"], path, body)
            if response.status != 204:
                failed.append((path, response.status, response.body))
    assert not failed


async def test_what_is_not_there_is_404(console: ConsoleCalls) -> None:
    assert await console.status("GET", "/admin/console/policies/public/nothing") == 404
