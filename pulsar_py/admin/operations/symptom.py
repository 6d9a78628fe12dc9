"""`Symptom`: one thing that an operator should look at, and how bad it is (values)."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

__all__ = ["Symptom", "Urgency"]


class Urgency(StrEnum):
    """The severity of a symptom."""

    ERROR = "error"
    """Clients notice, or messages may be lost or seen."""
    WARNING = "warning"
    """It will become an error."""
    NOTICE = "notice"
    """It may be what was wanted."""


class Symptom(Struct, frozen=True):
    """One thing to look at."""

    code: str
    urgency: Urgency
    subject: str
    message: str
    help: str

    def json(self) -> dict[str, str]:
        """The item of an answer."""
        return {
            "code": self.code,
            "urgency": self.urgency.value,
            "subject": self.subject,
            "message": self.message,
            "help": self.help,
        }
