from __future__ import annotations

import pytest

from pulsar_py.common.errors import (
    ProducerBlockedQuotaExceededError,
    ProducerBlockedQuotaExceededExceptionError,
)
from pulsar_py.common.policies import BacklogQuota, BacklogQuotaAction, BacklogQuotaType
from pulsar_py.server.limits.backlog_quota import (
    Backlog,
    ExceededQuota,
    blocks_producers,
    entries_to_evict,
    exceeded_quotas,
    refusal,
)

SIZE, AGE = BacklogQuotaType.DESTINATION_STORAGE, BacklogQuotaType.MESSAGE_AGE
HOLD = BacklogQuotaAction.PRODUCER_REQUEST_HOLD
THROW = BacklogQuotaAction.PRODUCER_EXCEPTION
EVICT = BacklogQuotaAction.CONSUMER_BACKLOG_EVICTION


@pytest.mark.parametrize(
    ("limit", "size", "exceeds"),
    [(100, 99, False), (100, 100, True), (-1, 10**9, False), (0, 10**9, False)],
)
def test_a_size_quota_is_exceeded_from_its_limit_on(
    limit: int, size: int, *, exceeds: bool
) -> None:
    quotas = {SIZE: BacklogQuota(limit, -1, HOLD)}
    assert bool(exceeded_quotas(quotas, Backlog(size, None))) is exceeds


def test_an_age_quota_needs_a_known_age() -> None:
    quotas = {AGE: BacklogQuota(-1, 10, HOLD)}
    assert exceeded_quotas(quotas, Backlog(5, None)) == []
    assert exceeded_quotas(quotas, Backlog(5, 10.0)) == []
    assert [each.type for each in exceeded_quotas(quotas, Backlog(5, 10.1))] == [AGE]


@pytest.mark.parametrize(
    ("action", "error"),
    [
        (HOLD, ProducerBlockedQuotaExceededError),
        (THROW, ProducerBlockedQuotaExceededExceptionError),
        (EVICT, type(None)),
    ],
)
def test_what_a_producer_is_told(action: BacklogQuotaAction, error: type) -> None:
    exceeded = ExceededQuota(SIZE, BacklogQuota(1, -1, action))
    assert isinstance(refusal(exceeded, "t"), error)
    assert blocks_producers(exceeded) is (action is not EVICT)


def test_eviction_goes_to_nine_tenths_of_the_limit() -> None:
    assert entries_to_evict(backlog_bytes=1000, limit_bytes=1000, entries_count=100) == 10
    assert entries_to_evict(backlog_bytes=1800, limit_bytes=1000, entries_count=100) == 50
    assert entries_to_evict(backlog_bytes=900, limit_bytes=1000, entries_count=100) == 0
    assert entries_to_evict(backlog_bytes=0, limit_bytes=1000, entries_count=0) == 0
