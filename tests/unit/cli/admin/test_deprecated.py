"""Older names do what the newer ones do."""

from __future__ import annotations

import pytest

from tests.unit.cli.admin.replayed import run


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ("persistent list t/n", "/admin/v2/persistent/t/n"),
        (
            "persistent skip-all -s s t",
            "/admin/v2/persistent/public/default/t/subscription/s/skip_all",
        ),
        ("destinations stats t", "/admin/v2/persistent/public/default/t/stats"),
        ("non-persistent list t/n", "/admin/v2/non-persistent/t/n"),
        ("non-persistent list-in-bundle -b 0x0_0x8 t/n", "/admin/v2/non-persistent/t/n"),
        ("properties list", "/admin/v2/tenants"),
    ],
)
def test_words_under_older_names(line: str, path: str) -> None:
    server, done = run(*line.split())
    assert done.exit_code == 0, done.output
    assert [each[1] for each in server.requests] == [path]
