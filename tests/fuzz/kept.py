"""The corpus: inputs that went wrong once, and those that reach all the code that inputs reached.

Each of the first is a file in `corpus/<target>/`; of the second there is a line of base64 each in
`corpus/<target>.reached`, which `guided` writes.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:  # `guided` instruments what is imported by it
    from tests.fuzz.run import Finding

CORPUS: Final = Path(__file__).parent / "corpus"


def kept(name: str) -> list[bytes]:
    """All that is kept for a target, what went wrong first."""
    return [
        *(each.read_bytes() for each in sorted((CORPUS / name).glob("*"))),
        *reached(name),
    ]


def reached(name: str) -> list[bytes]:
    """The inputs that reach much."""
    path = CORPUS / f"{name}.reached"
    return [base64.b64decode(line) for line in path.read_bytes().split()] if path.exists() else []


def keep_reached(name: str, inputs: Iterable[bytes]) -> None:
    """Replace the inputs that reach much."""
    lines = sorted(base64.b64encode(each) + b"\n" for each in inputs)
    (CORPUS / f"{name}.reached").write_bytes(b"".join(lines))


def keep_wrong(name: str, finding: Finding) -> Path:
    """Keep an input that went wrong."""
    path = CORPUS / name / hashlib.sha256(finding.data).hexdigest()[:16]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(finding.data)
    return path
