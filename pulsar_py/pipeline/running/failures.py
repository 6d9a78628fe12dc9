"""Reads errors of Spark: the sentence that gives the reason, and whether a restart can help (pure).

Errors that Python workers raise come from Spark as texts: a traceback of Java's, with the worker's
traceback inside. The names of our error classes in such a text decide.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from pulsar_py.common.errors import PulsarError

_FINAL: Final = re.compile(
    r"\b(?:(?:Invalid)?Configuration|InvalidServiceUrl|InvalidTopicName|Authentication|Authorization"
    r"|TopicNotFound|IncompatibleSchema|SchemaSerialization|SinkReplay|NotAllowed|TableSchema|DataLoss)Error\b"
    r"|\[(?:UNRESOLVED_|PARSE_|DATATYPE_MISMATCH|INVALID_|MISSING_|TABLE_OR_VIEW_NOT_FOUND)"
)
_ERROR_LINE: Final = re.compile(
    r"^(?:: |Caused by: )?((?:[A-Za-z_][\w.]*\.)?)([A-Z]\w*(?:Error|Exception)): (.+)$"
)
_WRAPPERS: Final = {"PythonException", "SparkException", "StreamingQueryException"}
"""Errors that only say that something failed; the reason is in another line."""


def is_final(error: BaseException) -> bool:
    """Whether the same error would come again after a restart."""
    name = "" if not isinstance(error, PulsarError) else type(error).__name__
    return any(_FINAL.search(f"{name} {each}") for each in _causes(error))


def reason_of(error: BaseException) -> str:
    """The sentence that gives the reason: the last line of a traceback, or of a cause's.

    A line of one of our own errors is preferred: the others may be consequences of it.
    """
    texts = [str(each) for each in _causes(error)]
    lines = [line.strip() for text in texts for line in text.splitlines() if line.strip()]
    if isinstance(error, PulsarError) or not lines:
        return f"{type(error).__name__}: {error}"
    found = [match for line in lines if (match := _ERROR_LINE.match(line))]
    found = [match for match in found if match[2] not in _WRAPPERS]
    ours = [match for match in found if match[1].startswith("pulsar_py.")]
    if found:
        _, name, text = (ours or found)[-1].groups()
        return f"{name}: {text}"
    return f"{type(error).__name__}: {lines[0]}"


def _causes(error: BaseException) -> Iterator[BaseException]:
    """An error and its causes, in the attribute where Spark's errors keep them."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = getattr(cause, "_cause", None)
