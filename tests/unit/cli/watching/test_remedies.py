"""Commands that help a subscription which does not move."""

from __future__ import annotations

import shlex

import pytest
from click.testing import CliRunner

from pulsar_py.cli.commands import main
from pulsar_py.cli.watching.remedies import REMEDIES, remedy
from pulsar_py.server.subscriptions.standstill import Cause


def test_each_cause_has_a_command_or_none_on_purpose() -> None:
    assert set(REMEDIES) == {each.value for each in Cause}


@pytest.mark.parametrize("code", sorted(REMEDIES))
def test_a_command_is_safe_in_a_shell(code: str) -> None:
    name = "s; rm -rf '$HOME'"
    text = remedy(code, name, name, {"limit": 5, "scope": "topic", "consumers": [{"limit": 7}]})
    words = shlex.split(text)
    assert not words or words[0] == "pulsar-py"
    assert ";" not in {word for word in words if word != name}


@pytest.mark.parametrize("scope", ["subscription s", "topic", "broker"])
@pytest.mark.parametrize("code", sorted(REMEDIES))
def test_a_command_of_the_administration_is_one_that_there_is(code: str, scope: str) -> None:
    fields = {"limit": 5, "scope": scope, "consumers": [{"limit": 7}]}
    _, *words = shlex.split(remedy(code, "t", "s", fields)) or [""]
    if words[:1] != ["admin"]:
        return
    nowhere = ["admin", "--admin-url", "http://localhost:1", *words[1:]]
    result = CliRunner().invoke(main, nowhere)
    assert "localhost:1" in result.output  # it was understood, and would have been sent


@pytest.mark.parametrize(
    ("code", "fields", "command"),
    [
        ("PAUSED", {}, "pulsar-py subscription resume t s"),
        ("RATE_LIMIT", {"scope": "elsewhere"}, ""),
        (
            "RATE_LIMIT",
            {"scope": "subscription s"},
            "set-subscription-dispatch-rate -md -1 -bd -1 t",
        ),
        ("RATE_LIMIT", {"scope": "topic"}, "topicPolicies set-dispatch-rate -md -1 -bd -1 t"),
        ("CONSUMER_UNACKED_LIMIT", {"consumers": [{"limit": 50}]}, "per-consumer -m 102 t"),
        ("BROKER_UNACKED_LIMIT", {"limit": 3}, "admin topics unload t"),
        ("LOOK_AHEAD_LIMIT", {"limit": 15_000}, "PerSubscription --value 30000"),
        (
            "LOOK_AHEAD_LIMIT",
            {"limit": 4_000, "setting": "keySharedLookAheadMsgInReplayThresholdPerConsumer"},
            "keySharedLookAheadMsgInReplayThresholdPerConsumer --value 20000",
        ),
        ("SOMETHING_NEW", {}, ""),
    ],
)
def test_a_limit_is_doubled_and_a_rate_lifted(
    code: str, fields: dict[str, object], command: str
) -> None:
    assert remedy(code, "t", "s", fields).endswith(command)
