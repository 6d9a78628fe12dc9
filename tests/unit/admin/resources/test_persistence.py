"""Quorums of a namespace's ledgers, and the bookies that they are bound to."""

from __future__ import annotations

import pytest

from pulsar_py.common.names import NamespaceName
from tests.unit.admin.resources.conftest import Admin

N = "/admin/v2/namespaces/public/default"
PERSISTENCE = f"{N}/persistence"
AFFINITY = f"{PERSISTENCE}/bookieAffinity"
NOWHERE = "/admin/v2/namespaces/public/nowhere/persistence"


def quorums(ensemble: int, write: int, ack: int, rate: float = 1.0) -> dict[str, object]:
    return {
        "bookkeeperEnsemble": ensemble,
        "bookkeeperWriteQuorum": write,
        "bookkeeperAckQuorum": ack,
        "managedLedgerMaxMarkDeleteRate": rate,
    }


async def test_quorums_are_set_shown_and_unset(admin: Admin) -> None:
    assert (await admin.call("GET", PERSISTENCE)).body == b""
    assert await admin.status("POST", PERSISTENCE, quorums(3, 2, 2, 10.0)) == 204
    assert await admin.get(PERSISTENCE) == quorums(3, 2, 2, 10.0)
    assert (await admin.get(N))["persistence"] == quorums(3, 2, 2, 10.0)
    assert await admin.status("DELETE", PERSISTENCE) == 204
    assert await admin.status("DELETE", PERSISTENCE) == 204
    assert (await admin.call("GET", PERSISTENCE)).body == b""
    assert "persistence" not in await admin.get(N)


async def test_what_is_missing_of_quorums_has_pulsars_defaults(admin: Admin) -> None:
    assert await admin.status("POST", PERSISTENCE, {"unknown": 1}) == 204
    assert await admin.get(PERSISTENCE) == quorums(2, 2, 2, -1.0)
    named = {**quorums(1, 1, 1), "managedLedgerStorageClassName": "bookkeeper"}
    assert await admin.status("POST", PERSISTENCE, named) == 204
    assert await admin.get(PERSISTENCE) == named


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (quorums(1, 2, 1), "Bookkeeper Ensemble (1) >= WriteQuorum (2) >= AckQuorum (1)"),
        (quorums(2, 1, 2), "Bookkeeper Ensemble (2) >= WriteQuorum (1) >= AckQuorum (2)"),
        (quorums(0, 0, 0), "Bookkeeper-Ensemble must be <= 5 and > 0."),
        (quorums(9, 9, 9), "Bookkeeper-Ensemble must be <= 5 and > 0."),
        (quorums(2, 0, 0), "Bookkeeper-WriteQuorum must be <= 5 and > 0."),
        (None, "persistence policies should not be null"),
    ],
)
async def test_quorums_that_no_ledger_can_have_are_refused(
    admin: Admin, body: object, reason: str
) -> None:
    assert await admin.reason("POST", PERSISTENCE, body) == (400, reason)
    assert (await admin.call("GET", PERSISTENCE)).body == b""


@pytest.mark.parametrize(
    "wrong", [{"bookkeeperEnsemble": "x"}, {"managedLedgerMaxMarkDeleteRate": "x"}, []]
)
async def test_a_body_of_another_kind_is_refused(admin: Admin, wrong: object) -> None:
    assert await admin.status("POST", PERSISTENCE, wrong) == 400


async def test_both_need_their_namespace(admin: Admin) -> None:
    missing = 404, "Namespace does not exist"
    assert await admin.reason("GET", NOWHERE) == missing
    assert await admin.reason("POST", NOWHERE, quorums(1, 1, 1)) == missing
    assert await admin.reason("DELETE", NOWHERE) == missing
    missing = 404, "Namespace not found"
    assert await admin.reason("GET", f"{NOWHERE}/bookieAffinity") == missing
    assert await admin.reason("POST", f"{NOWHERE}/bookieAffinity", {}) == missing
    assert await admin.reason("DELETE", f"{NOWHERE}/bookieAffinity") == missing


async def test_an_affinity_leaves_bundles_as_they_are(admin: Admin) -> None:
    resources = admin.service.resources
    namespace = NamespaceName("public", "default")
    before = await resources.namespaces.bundles_of(namespace)
    assert await admin.status("POST", AFFINITY, {"bookkeeperAffinityGroupPrimary": "g1"}) == 204
    assert await admin.get(AFFINITY) == {"bookkeeperAffinityGroupPrimary": "g1"}
    assert await admin.status("DELETE", AFFINITY) == 204
    local = await resources.local_policies.get(namespace)
    assert local is not None
    assert local.boundaries == before
