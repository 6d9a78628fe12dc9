"""Words about the policies of topics send and print what pulsar-admin does."""

from __future__ import annotations

from tests.unit.cli.admin.replayed import differences, run


def test_what_was_recorded() -> None:
    assert not differences("topicPolicies")


def test_one_subscription_has_a_rate_of_its_own() -> None:
    server, _ = run("topicPolicies", "set-subscription-dispatch-rate", "-md", "5", "-s", "s", "t")
    ((method, path, query, body),) = server.requests
    assert (method, path) == ("POST", "/admin/v2/persistent/public/default/t/s/dispatchRate")
    assert not query
    assert body["dispatchThrottlingRateInMsg"] == 5


def test_the_dispatcher_pauses_where_the_broker_says_so() -> None:
    server, done = run(
        "topicPolicies", "get-dispatcher-pause-on-ack-state-persistent", "-a", "-g", "t"
    )
    assert server.requests[0][2] == {"isGlobal": "true", "applied": "true"}
    assert done.stdout == "true\n"


def test_for_all_clusters() -> None:
    server, _ = run("topicPolicies", "set-replication-clusters", "-c", "a,b", "--global", "t")
    assert server.requests[0][2:] == ({"isGlobal": "true"}, ["a", "b"])
