"""The type variables of producers, consumers, readers, messages and views, bound by schemas.

A `Schema[Order]` makes a `Producer[Order]` and `Message[Order]`s; without a schema they have bytes.
A class named without its type, such as `Message`, is one of any values, so programs that don't want
types need none. Both are defaults of type variables (PEP 696), which only type checkers see: here
Python's own have none before 3.13.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    T = TypeVar("T", default=Any)
    T_co = TypeVar("T_co", covariant=True, default=Any)
    T_contra = TypeVar("T_contra", contravariant=True, default=Any)
    Received = TypeVar("Received", default=bytes)
    Sent = TypeVar("Sent", default=bytes | bytearray | memoryview)
else:
    from typing import TypeVar

    T = TypeVar("T")
    T_co = TypeVar("T_co", covariant=True)
    T_contra = TypeVar("T_contra", contravariant=True)
    Received = TypeVar("Received")
    Sent = TypeVar("Sent")

__all__ = ["Received", "Sent", "T", "T_co", "T_contra"]
