"""Services that are not here answer as a broker without them."""

from __future__ import annotations

import pytest

from tests.unit.admin.resources.conftest import Admin


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("/admin/v2/worker/cluster", 409, "Function Worker is not enabled"),
        ("/admin/v3/functions/public/default", 409, "Function Worker is not enabled"),
        ("/admin/v3/sinks/public/default/s/0/status", 409, "Function Worker is not enabled"),
        ("/admin/v3/packages/function/public/default", 503, "Package Management"),
        ("/admin/v3/transactions/coordinators", 503, "transactionCoordinatorEnabled"),
        ("/admin/v3/transactions/pendingAckStats/a/b/c/d", 503, "transactionCoordinatorEnabled"),
    ],
)
async def test_each_method_is_answered_with_the_reason(
    admin: Admin, path: str, status: int, words: str
) -> None:
    for method in ("GET", "PUT", "POST", "DELETE"):
        answered, reason = await admin.reason(method, path)
        assert (answered, words in reason) == (status, True)
