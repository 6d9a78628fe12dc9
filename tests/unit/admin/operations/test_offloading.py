"""Offloading, for which no driver is here."""

from __future__ import annotations

from pulsar_py.common.names import TopicName
from pulsar_py.server.topics.persistent import PersistentTopic
from tests.unit.admin.resources.conftest import Admin

T = "/admin/v2/persistent/public/default/a"


async def test_nothing_is_claimed_to_have_moved(admin: Admin) -> None:
    await admin.call("PUT", T + "/subscription/s", "earliest")
    assert (await admin.get(T + "/offload"))["status"] == "NOT_RUN"
    assert await admin.status("PUT", T + "/offload") == 400
    topic = admin.service.topics.loaded(TopicName.parse("persistent://public/default/a"))
    assert isinstance(topic, PersistentTopic)
    await topic.ledger.append_and_wait(b"message")
    first = topic.ledger.first_position
    position = {"ledgerId": first.ledger_id, "entryId": 0}
    assert await admin.status("PUT", T + "/offload", position) == 204  # nothing is before it
    position["ledgerId"] += 1
    status, reason = await admin.reason("PUT", T + "/offload", position)
    assert (status, "nothing was moved" in reason) == (405, True)
    assert await admin.status(
        "GET", T.replace("/persistent/", "/non-persistent/") + "/offload"
    ) in {
        404,
        405,
    }
