"""Compiles regular expressions that others send, so that matching takes no long time (pure).

Python's own backtrack: a pattern that a caller has chosen can stop the broker for everybody. RE2
takes time in proportion to the text, and refuses what it can't match so: look-around and back
references. It is loaded with the first pattern.

Source: docs/adr/0007-re2-for-patterns-of-clients.md.

Third-party packages it may import: google-re2.
"""

from __future__ import annotations

from typing import Final, cast

from pulsar_py.common.conditions import Pattern

MAX_MEMORY_BYTES: Final = 1 << 20


def linear_pattern(pattern: str) -> Pattern:
    """The pattern, compiled.

    Raises:
        ValueError: It is none of RE2's.
    """
    import re2  # noqa: PLC0415 - at first use

    options = re2.Options()
    options.log_errors = False
    options.max_mem = MAX_MEMORY_BYTES
    try:
        return cast("Pattern", re2.compile(pattern, options))
    except re2.error as error:
        reason = error.args[0] if error.args else error
        text = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
        raise ValueError(f"{text} (patterns are RE2's)") from None
