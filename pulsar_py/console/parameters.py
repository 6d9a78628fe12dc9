"""Declares the console's own kinds of parameters; a wrong value is answered with 400."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from pulsar_py.admin.declared import Parameter
from pulsar_py.admin.http_messages import HttpError, Request
from pulsar_py.common.position import Position

__all__ = ["Amount", "EntryParameter"]

_MAX_PLACE_CHARACTERS = 40


class Amount(Parameter, frozen=True):
    """A whole number within bounds."""

    minimum: int = 0
    maximum: int = 10**18 - 1
    default: int | None = None

    def of(self, request: Request) -> int | None:
        """Its value, the default if it was not sent.

        Raises:
            HttpError: 400, it is none, or out of bounds.
        """
        text = self.text(request)
        if not text:
            return self.default
        if text.isdecimal() and len(text) <= len(str(self.maximum)):
            value = int(text)
            if self.minimum <= value <= self.maximum:
                return value
        raise HttpError(
            HTTPStatus.BAD_REQUEST, f"{self.name}: expected {self.minimum} to {self.maximum}"
        )

    def required(self, request: Request) -> int:
        """Its value.

        Raises:
            HttpError: 400, it is missing, none, or out of bounds.
        """
        value = self.of(request)
        if value is None:
            raise HttpError(HTTPStatus.BAD_REQUEST, f"{self.name}: expected a whole number")
        return value

    def json_schema(self) -> dict[str, Any]:  # Any: JSON
        """Its type for the OpenAPI document."""
        default = {} if self.default is None else {"default": self.default}
        return {"type": "integer", "minimum": self.minimum, "maximum": self.maximum, **default}


class EntryParameter(Parameter, frozen=True):
    """An entry, `ledger:entry`."""

    def of(self, request: Request) -> Position | None:
        """Its position; None if it was not sent.

        Raises:
            HttpError: 400, it is something else.
        """
        text = self.text(request)
        if not text:
            return None
        ledger, colon, entry = text.partition(":")
        is_number = ledger.isdecimal() and entry.isdecimal()
        if colon and is_number and len(text) < _MAX_PLACE_CHARACTERS:
            return Position(int(ledger), int(entry))
        raise HttpError(HTTPStatus.BAD_REQUEST, f"{self.name}: expected ledger:entry, as 12:0")

    def json_schema(self) -> dict[str, Any]:  # Any: JSON
        """Its type for the OpenAPI document."""
        return {"type": "string", "pattern": "^[0-9]+:[0-9]+$"}
