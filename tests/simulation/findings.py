"""Tells whether a seed has found a bug that was put in, or whether that bug itself is broken.

A mutation replaces functions of the product. When those change, the replacement may not fit any
more, and its own TypeError ends the first seed: that shows nothing.
"""

from __future__ import annotations

from typing import Final

_MISFITS: Final = ("TypeError(", "AttributeError(", "NameError(")


def is_finding(error: AssertionError) -> bool:
    """Whether a seed failed by what the product did, not by a replacement that does not fit."""
    return not any(each in str(error) for each in _MISFITS)
