"""The OpenAPI document is fresh."""

from __future__ import annotations

from pathlib import Path

from docs import openapi


def test_the_document_is_fresh() -> None:
    assert Path("docs/openapi.json").read_text("utf-8") == openapi.render(), "run `make docs`"
