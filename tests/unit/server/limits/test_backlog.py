from __future__ import annotations

from pulsar_py.common.policies import BacklogQuota, BacklogQuotaAction, BacklogQuotaType
from pulsar_py.server.limits.backlog import measure_backlog
from pulsar_py.server.policies.topic_settings import TopicSettings
from tests.unit.server.topics.rig import Rig, entry, send

AGE = {BacklogQuotaType.MESSAGE_AGE: BacklogQuota(-1, 5, BacklogQuotaAction.PRODUCER_EXCEPTION)}


async def test_without_durable_subscriptions_there_is_no_backlog(rig: Rig) -> None:
    topic = await rig.persistent()
    producer = await rig.producer(topic, rig.cnx())
    send(producer, 0)
    await producer.close()
    assert (await topic.backlog()).size_bytes == 0


async def test_the_slowest_cursor_counts(rig: Rig) -> None:
    topic = await rig.persistent()
    await topic.create_subscription("slow", starts_at_earliest=True)
    producer = await rig.producer(topic, rig.cnx())
    send(producer, 0)
    await rig.clock.sleep(0.01)
    await topic.create_subscription("fast", starts_at_earliest=False)
    await producer.close()
    backlog = await topic.backlog()
    assert backlog.size_bytes == len(entry(0))
    assert backlog.oldest_age_seconds is None


async def test_age_is_the_ledgers_or_the_messages(rig: Rig) -> None:
    topic = await rig.persistent()
    await topic.create_subscription("sub", starts_at_earliest=True)
    producer = await rig.producer(topic, rig.cnx())
    now = rig.clock.wall_time_millis()
    send(producer, 0, entry(0, publish_time=now - 60_000))
    await producer.close()
    coarse = TopicSettings(backlog_quotas=AGE)
    precise = TopicSettings(backlog_quotas=AGE, is_age_quota_precise=True)
    open_ledger = await measure_backlog(topic.ledger, coarse, now)
    assert open_ledger.oldest_age_seconds is None
    exact = await measure_backlog(topic.ledger, precise, now)
    assert exact.oldest_age_seconds == 60
    await topic.ledger.roll_ledger()
    closed = topic.ledger.ledgers_info()[0].closed_millis
    rolled = await measure_backlog(topic.ledger, coarse, closed + 5000)
    assert rolled.oldest_age_seconds == 5
