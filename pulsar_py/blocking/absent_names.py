"""Names replacements for names of the official client that the blocking client lacks (pure).

See `client.shared.absent_names`.
"""

from __future__ import annotations

from typing import Final

from pulsar_py.client.shared import absent_names

__all__ = ["CLIENT", "CONSUMER", "PRODUCER", "READER"]


def _without_await(names: dict[str, str]) -> dict[str, str]:
    return {name: words.replace("await ", "") for name, words in names.items()}


CLIENT: Final = _without_await(absent_names.CLIENT)
PRODUCER: Final = _without_await(absent_names.PRODUCER) | {
    "send_async": (
        "use `producer.send_nowait(content)`, whose result has `result()` and"
        " `add_done_callback(callback)`"
    )
}
CONSUMER: Final = _without_await(absent_names.CONSUMER)
READER: Final = _without_await(absent_names.READER)
