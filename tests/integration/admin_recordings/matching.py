"""Whether an answer is the recorded one, by the types and placeholders below (pure)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

_IN_TEXT = {
    "<ledger>": r"\d+",
    "<broker-url>": r"pulsar://[^/]+:\d+",
    "<web-url>": r"http://[^/]+:\d+",
    "<broker-id>": r"[^/]+:\d+",
    "<address>": r"/[^/]+:\d+",
    "<version>": r".+",
    "<uuid>": r"[0-9a-f-]{36}",
    "<time>": r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)",
}
_FIRST_MILLIS_OF_2020 = 1_577_836_800_000
_ORDERED = {"boundaries", "keyHashRanges", "keyHashRangeArrays"}
_NAMES = ("consumerName", "producerName")


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


_TYPES = {
    "<int>": _is_int,
    "<int+>": lambda value: _is_int(value) and value > 0,
    "<float>": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "<bool>": lambda value: isinstance(value, bool),
    "<str>": lambda value: isinstance(value, str),
    "<list>": lambda value: isinstance(value, list),
    "<map>": lambda value: isinstance(value, dict),
    "<any>": lambda _: True,
    "<null>": lambda value: value is None,
    "<ms>": lambda value: _is_int(value) and value > _FIRST_MILLIS_OF_2020,
}


def differences(expected: Any, actual: Any, *, exact: bool = False, at: str = "") -> list[str]:
    """What differs between a recorded JSON value and ours; keys beyond the recorded ones are fine."""
    if isinstance(expected, str):
        return [] if _matches_text(expected, actual) else [f"{at}: {actual!r}, not {expected!r}"]
    if isinstance(expected, dict):
        return _dict_differences(expected, actual, exact=exact, at=at)
    if isinstance(expected, list):
        return _list_differences(expected, actual, exact=exact, at=at)
    same = expected == actual and isinstance(expected, bool) == isinstance(actual, bool)
    return [] if same else [f"{at}: {actual!r}, not {expected!r}"]


def _matches_text(expected: str, actual: Any) -> bool:
    if expected in _TYPES:
        return bool(_TYPES[expected](actual))
    if not isinstance(actual, str):
        return False
    pattern = "".join(
        _IN_TEXT.get(part, re.escape(part)) for part in re.split(r"(<[a-z-]+>)", expected)
    )
    return re.fullmatch(pattern, actual, re.DOTALL) is not None


def _dict_differences(
    expected: Mapping[str, Any], actual: Any, *, exact: bool, at: str
) -> list[str]:
    if not isinstance(actual, dict):
        return [f"{at}: {actual!r} is no object"]
    found = []
    for key, value in expected.items():
        if key not in actual:
            found.append(f"{at}.{key}: missing")
        else:
            found += differences(value, actual[key], exact=exact, at=f"{at}.{key}")
    if exact:
        found += [f"{at}.{key}: not expected" for key in actual.keys() - expected.keys()]
    return found


def _list_differences(expected: list[Any], actual: Any, *, exact: bool, at: str) -> list[str]:
    if not isinstance(actual, list):
        return [f"{at}: {actual!r} is no list"]
    if len(expected) != len(actual):
        return [f"{at}: {len(actual)} items ({json.dumps(actual)[:200]}), not {len(expected)}"]
    if at.rpartition(".")[2] not in _ORDERED:
        expected, actual = sorted(expected, key=_sort_key), sorted(actual, key=_sort_key)
    found = []
    for index, (left, right) in enumerate(zip(expected, actual, strict=True)):
        found += differences(left, right, exact=exact, at=f"{at}[{index}]")
    return found


def _sort_key(item: Any) -> str:
    """Texts by themselves, consumers and producers by name; others stay where they are."""
    if isinstance(item, str):
        return item
    if isinstance(item, dict):
        return next((str(item[name]) for name in _NAMES if name in item), "")
    return ""


def part_of(step: Mapping[str, Any], value: Any) -> Any:
    """The part of a body that a call looks at."""
    for key in step.get("at", ()):
        if key == "*":
            value = next(iter(value.values() if isinstance(value, dict) else value))
        else:
            value = value[key]
    if "pick" in step:
        value = {key: value[key] for key in step["pick"] if key in value}
    if "keep" in step:
        value = _kept(step["keep"], value)
    if step.get("sample"):
        value = value[:1]
    return value


def _kept(texts: list[str], value: Any) -> Any:
    if isinstance(value, dict):
        return {key: item for key, item in value.items() if any(text in key for text in texts)}
    return [item for item in value if any(text in str(item) for text in texts)]


def look_up(value: Any, path: str) -> Any:
    """What stands at `a.b[0].c` in a body.

    Raises:
        LookupError: Nothing does.
    """
    for name, index in re.findall(r"([^.\[\]]+)|\[(\d+)\]", path):
        if index:
            value = value[int(index)]
        elif isinstance(value, dict):
            value = value[name]
        else:
            raise KeyError(name)
    return value


def holds(until: Mapping[str, Any], status: int, body: bytes) -> bool:
    """Whether what a call waits for has come."""
    if "status" in until:
        return status == until["status"]
    if until.get("empty"):
        return not body.strip()
    if "path" not in until:
        return bool(body.strip())
    try:
        value = look_up(json.loads(body), until["path"])
    except (ValueError, LookupError, TypeError):
        return bool(until.get("absent"))
    return _is_wanted(until, value)


def _is_wanted(until: Mapping[str, Any], value: Any) -> bool:
    if "equals" in until:
        return bool(value == until["equals"])
    if "not" in until:
        return bool(value != until["not"])
    if "min" in until:
        return bool(value >= until["min"])
    return not until.get("absent")
