"""SettingsRefresh: changed settings reach each loaded topic, also where they can't be read now."""

from __future__ import annotations

import json

import pytest

from pulsar_py.common.errors import (
    MetadataError,
    MetadataUnavailableError,
    PersistenceError,
    StoreUnavailableError,
)
from pulsar_py.common.policies import BookieAffinity, PersistencePolicies
from pulsar_py.ledgers.labels import ENSEMBLE_PLACEMENT_POLICY
from pulsar_py.metadata.documents import LocalPolicies
from pulsar_py.server.topics.persistent import PersistentTopic
from pulsar_py.server.topics.settings_refresh import RETRY_SECONDS
from pulsar_py.server.topics.topic_state import TopicState
from tests.unit.server.topics.rig import NAMESPACE, Rig


async def change(rig: Rig, seconds: int) -> None:
    await rig.broker.resources.namespaces.update(
        NAMESPACE, lambda old: old.replace(message_ttl_seconds=seconds)
    )


def failing(rig: Rig, monkeypatch: pytest.MonkeyPatch, *errors: Exception) -> list[Exception]:
    """Let policies be unreadable so many times; returns the errors that are left."""
    left = list(errors)
    settings_of = rig.broker.topics._refresh._settings_of

    async def sometimes(name: object) -> object:
        if left:
            raise left.pop(0)
        return await settings_of(name)  # type: ignore[arg-type]

    monkeypatch.setattr(rig.broker.topics._refresh, "_settings_of", sometimes)
    return left


async def test_settings_that_can_not_be_read_now_are_read_again(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic, other = await rig.persistent(), await rig.topic("other")
    await rig.clock.sleep(0.1)
    left = failing(rig, monkeypatch, MetadataUnavailableError("a"), MetadataUnavailableError("b"))
    await change(rig, 5)
    await rig.clock.sleep(3 * RETRY_SECONDS)
    assert (topic.settings.message_ttl_seconds, other.settings.message_ttl_seconds) == (5, 5)
    assert not left


async def test_what_can_not_be_read_at_all_is_left_as_it_is(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    topic = await rig.persistent()
    await rig.clock.sleep(0.1)
    failing(rig, monkeypatch, MetadataError("unreadable"))
    await change(rig, 5)
    await rig.clock.sleep(3 * RETRY_SECONDS)
    assert topic.settings.message_ttl_seconds == 0
    assert "settings not applied" in caplog.text


async def test_a_topic_that_opens_again_has_what_was_changed_meanwhile(rig: Rig) -> None:
    topic = await rig.persistent()
    await rig.clock.sleep(0.1)
    topic.state = TopicState.FENCED  # as while the outcome of entries is open
    await change(rig, 5)
    await rig.clock.sleep(0.1)
    assert topic.settings.message_ttl_seconds == 0
    topic.state = TopicState.OPEN
    await rig.clock.sleep(RETRY_SECONDS)
    assert topic.settings.message_ttl_seconds == 5


@pytest.mark.parametrize("error", [StoreUnavailableError("not now"), PersistenceError("no")])
async def test_settings_stay_as_they_were_where_deduplication_can_not_be_switched(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    topic = await rig.persistent()
    assert isinstance(topic, PersistentTopic)
    await rig.clock.sleep(0.1)

    async def fails() -> None:
        monkeypatch.undo()
        raise error

    monkeypatch.setattr(topic, "_switch_deduplication", fails)
    before = topic.settings
    await change(rig, 5)
    await rig.clock.sleep(0.1)
    assert topic.settings == before
    await rig.clock.sleep(RETRY_SECONDS)
    wanted = 5 if isinstance(error, StoreUnavailableError) else 0
    assert topic.settings.message_ttl_seconds == wanted


async def test_bookies_and_quorums_of_a_namespace_reach_the_next_ledgers(rig: Rig) -> None:
    topic = await rig.persistent()
    await rig.clock.sleep(0.1)
    before = topic.settings.managed_ledger
    assert ENSEMBLE_PLACEMENT_POLICY not in before.data_ledger_options("t").custom_metadata
    resources = rig.broker.resources
    await resources.namespaces.update(
        NAMESPACE, lambda old: old.replace(persistence=PersistencePolicies(4, 3, 2, -1.0))
    )
    await resources.local_policies.update_or_create(
        NAMESPACE,
        lambda old: (old or LocalPolicies()).replace(
            bookie_affinity=BookieAffinity(("fast", "near"), ("far",))
        ),
    )
    await rig.clock.sleep(0.1)
    config = topic.settings.managed_ledger
    for options in (config.data_ledger_options("t"), config.cursor_ledger_options("t/c")):
        sizes = options.ensemble_size, options.write_quorum_size, options.ack_quorum_size
        assert sizes == (4, 3, 2)
        assert json.loads(options.custom_metadata[ENSEMBLE_PLACEMENT_POLICY])["properties"] == {
            "isolationBookieGroups": "fast,near",
            "secondaryIsolationBookieGroups": "far",
        }
    rate = before.cursor_persist_interval_seconds
    assert config.cursor_persist_interval_seconds == rate  # -1 leaves it to the broker
