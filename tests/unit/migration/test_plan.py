from __future__ import annotations

from collections import Counter

from pulsar_py.migration.moved_keys import Fate
from pulsar_py.migration.plan import INVALID, SHOWN, Plan, refusals
from pulsar_py.migration.roles import Role

FATES = {
    "/admin/policies/t": Fate.KEEP,
    "/admin/policies/t/n": Fate.CREATE,
    "/managed-ledgers/t/n/persistent/a": Fate.CREATE,
    "/managed-ledgers/t/n/persistent/a/sub": Fate.CREATE,
    "/managed-ledgers/t/n/persistent/a/other": Fate.CREATE,
    "/schemas/t/n/a": Fate.CREATE,
    "/admin/configuration": Fate.REPLACE,
}


def plan(*, is_renumbered: bool = False, is_begun: bool = False) -> Plan:
    return Plan(
        cluster="large",
        former_cluster="small",
        is_renumbered=is_renumbered,
        is_begun=is_begun,
        ledgers=Counter({Role.DATA: 4, Role.SCHEMA: 1}),
        verified=2,
        fates=FATES,
        next_ledger_id=17,
    )


def test_a_plan_says_what_is_moved() -> None:
    assert list(plan().lines()) == [
        "cluster: large, in place of small",
        "topics: 1",
        "subscriptions: 2",
        "topics with schemas: 1",
        "tenants and namespaces: 2",
        "keys: 7",
        "ledgers of topics: 4",
        "ledgers of schemas: 1",
        "ids are kept; new ledgers get ids from 17 on",
        "replaced there: /admin/configuration",
        "kept as it is there: /admin/policies/t",
    ]


def test_it_says_where_it_goes_on_and_what_other_ids_cost() -> None:
    lines = list(plan(is_renumbered=True, is_begun=True).lines())
    assert lines[0] == "goes on: 2 ledgers are there and were compared"
    assert INVALID in lines
    assert not any("ids are kept" in line for line in lines)
    for word in ("message ids", "readers", "Spark"):
        assert word in INVALID


def test_keys_that_can_not_be_there_twice_are_named_up_to_a_number() -> None:
    assert refusals(FATES) == []
    many = {f"/admin/policies/{number}": Fate.REFUSE for number in range(SHOWN + 3)}
    texts = refusals(many)
    assert texts[0] == "/admin/policies/0 is there already, with another value"
    assert texts[SHOWN] == "3 more keys are there already, with other values"
    assert "--existing" in texts[-1]
