"""What all tests share: property tests run the same examples every time, and few enough."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "derandomized",
    derandomize=True,
    deadline=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("derandomized")


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--rewrite` puts what playbooks answer now into their files, to be reviewed as a diff."""
    parser.addoption("--rewrite", action="store_true", help="rewrite the playbooks' answers")
