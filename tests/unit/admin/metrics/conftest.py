"""The broker in memory of the other resources."""

from tests.unit.admin.resources.conftest import admin

__all__ = ["admin"]
