"""Checks that options and arguments have the types that their annotations promise (pure).

`KINDS` has one entry for each annotation of a configuration: which values are accepted, and how an
error names them. `check_options` uses it before bounds are checked and anything is sent, so that
`consumer_type="Shared"` and `batching_enabled="no"` are refused where they were written. Arguments
that are not options (topics, positions, delays) have functions of their own below. At least the
annotated type is accepted: a whole number may be any type with `__index__`, and an object with the
methods of an interface need not derive from it.

`own_members` comes first: it converts the official Python client's enumeration members to ours, so
that programs can migrate step by step. A bare number or text is not accepted for a member.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import timedelta
from enum import IntEnum
from typing import Any, Final

from pulsar_py.client.messages.message import Message
from pulsar_py.client.shared import enums
from pulsar_py.common.errors import InvalidConfigurationError, InvalidMessageError
from pulsar_py.common.message_id import MessageId

__all__ = [
    "KINDS",
    "Kind",
    "check_delay",
    "check_message",
    "check_options",
    "check_seek_target",
    "check_service_url",
    "check_start_message_id",
    "check_text",
    "check_topics",
    "messages_of",
    "own_members",
]

_SHOWN_LENGTH: Final = 100
"""Characters of a value in an error."""

Accepts = Callable[[object], bool]


@dataclass(frozen=True, slots=True)
class Kind:
    """The values that an option accepts."""

    expected: str
    """What an error says is expected."""
    accepts: Accepts
    """Returns whether a value is accepted."""

    def or_none(self) -> Kind:
        """The same, or None."""
        return Kind(f"{self.expected}, or None", lambda value: value is None or self.accepts(value))


def check_options(config: Any) -> None:  # Any: of a dataclass
    """Refuse values that their field's annotation does not allow.

    Raises:
        InvalidConfigurationError: It names the option, its value, and what is expected.
    """
    for each in fields(config):
        assert isinstance(each.type, str), (
            "annotations are text: from __future__ import annotations"
        )
        _check(each.name, getattr(config, each.name), KINDS[each.type])


def own_members(options: Mapping[str, Any], config: Any) -> dict[str, Any]:
    """The options, with the official client's enumeration members replaced by ours.

    Any: options are not checked yet; `config` is the dataclass that they are for.
    """
    members = {each.name: kind for each in fields(config) if (kind := _ENUMS.get(str(each.type)))}
    return {
        name: _own_member(members[name], value) if name in members else value
        for name, value in options.items()
    }


def _own_member(kind: type[IntEnum], value: Any) -> Any:  # Any: whatever was given
    name = getattr(value, "name", None)
    if isinstance(name, str) and type(value).__name__ == kind.__name__:
        return kind.__members__.get(name, value)
    return value


def check_text(name: str, value: object) -> None:
    """Refuse values that are not text, such as a topic that is None or bytes.

    Raises:
        InvalidConfigurationError: It names the argument, its value, and what is expected.
    """
    _check(name, value, KINDS["str"])


def check_topics(value: object) -> None:
    """Refuse values that are not a topic, list of topics or pattern; raises as `check_text`."""
    _check("topic", value, _TOPICS)


def check_service_url(value: object) -> None:
    """Refuse what is neither a URL nor a `ServiceUrlProvider`; raises as `check_text`."""
    _check("service_url", value, _SERVICE_URL)


def check_start_message_id(value: object) -> None:
    """Refuse values that are not an id, mapping of ids or None; raises as `check_text`."""
    _check("start_message_id", value, _START)


def check_seek_target(value: object) -> None:
    """Refuse what no subscription can be moved to; raises as `check_text`."""
    _check("seek target", value, _SEEK_TARGET)


def check_delay(name: str, value: object) -> None:
    """Refuse values that are not a span of time from now on; raises as `check_text`."""
    _check(name, value, _DELAY)


def check_message(value: object, subject: str) -> None:
    """Refuse what is neither a message nor the id of one.

    Raises:
        InvalidMessageError: It names `subject`, the consumer, and the value.
    """
    if not isinstance(value, Message | MessageId):
        raise InvalidMessageError(f"{subject}: expected a message or its id, got {_shown(value)}")


def messages_of(
    value: Message | MessageId | Iterable[Message | MessageId], subject: str
) -> Sequence[Message | MessageId]:
    """One message, or all of several, each of them checked; raises as `check_message`."""
    if isinstance(value, Message | MessageId):
        return (value,)
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise InvalidMessageError(
            f"{subject}: expected a message, its id, or several of them, got {_shown(value)}"
        )
    messages = list(value)
    for each in messages:
        check_message(each, subject)
    return messages


def _check(name: str, value: object, kind: Kind) -> None:
    if not kind.accepts(value):
        hint = ""
        if name == "schema" and isinstance(value, type):
            hint = f": give JsonSchema({value.__name__}) or AvroSchema({value.__name__}) of it"
        raise InvalidConfigurationError(f"{name}={_shown(value)}: expected {kind.expected}{hint}")


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN_LENGTH else text[:_SHOWN_LENGTH] + "…"


# --- kinds -------------------------------------------------------------------------------------


def _is_whole_number(value: object) -> bool:
    return hasattr(value, "__index__") and not isinstance(value, bool | type)


def _is_number(value: object) -> bool:
    return isinstance(value, float) or _is_whole_number(value)


def _is_list(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray)


def _list_of(accepts: Accepts) -> Accepts:
    def accepts_list(value: object) -> bool:
        return isinstance(value, Sequence) and _is_list(value) and all(map(accepts, value))

    return accepts_list


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_text_by_text(value: object) -> bool:
    return isinstance(value, Mapping) and all(
        isinstance(name, str) and isinstance(text, str) for name, text in value.items()
    )


def _is_hash_range(value: object) -> bool:
    has_two = isinstance(value, Sequence) and len(value) == 2  # noqa: PLR2004 - a pair
    is_pair = has_two and _list_of(_is_whole_number)(value)
    is_range = _instance("pulsar_py.client.consuming.key_shared_policy", "KeyHashRange")
    return is_pair or is_range(value)


def _instance(module: str, name: str) -> Accepts:
    """Instances of that class, which is not loaded for it: without it there is no instance."""

    def accepts(value: object) -> bool:
        home = sys.modules.get(module)
        return home is not None and isinstance(value, getattr(home, name))

    return accepts


def _having(*methods: str) -> Accepts:
    """Objects, not classes, with these methods."""

    def accepts(value: object) -> bool:
        return not isinstance(value, type) and all(
            callable(getattr(value, method, None)) for method in methods
        )

    return accepts


def _object(module: str, name: str, article: str = "a") -> Kind:
    return Kind(f"{article} {name}", _instance(f"pulsar_py.{module}", name))


def _interface(name: str, *methods: str) -> Kind:
    return Kind(f"a {name}, which has {' and '.join(methods)}", _having(*methods))


def _choice(kind: type[IntEnum]) -> Kind:
    members = ", ".join(each.name for each in kind)
    return Kind(
        f"one of {kind.__name__}'s members {members}", lambda value: isinstance(value, kind)
    )


_ENUMS: Final[Mapping[str, type[IntEnum]]] = {name: getattr(enums, name) for name in enums.__all__}

_TEXT = Kind("text (str)", _is_text)
_WHOLE = Kind("a whole number (int)", _is_whole_number)
_FUNCTION = Kind("a function", callable)
_SCHEMA = _object("schema.schema", "Schema")
_CRYPTO_KEY_READER = _interface("CryptoKeyReader", "get_public_key", "get_private_key")
_BACKOFF = _interface("RedeliveryBackoff", "next_delay_millis")
_EVENT_LISTENER = _interface("ConsumerEventListener", "became_active", "became_inactive")
_CONNECTION_LISTENER = _interface(
    "ConnectionListener", "connected", "disconnected", "reconnected", "given_up"
)
_RANGES = Kind("a list of pairs (start, end) or KeyHashRanges", _list_of(_is_hash_range))

KINDS: Final[Mapping[str, Kind]] = {
    "bool": Kind("True or False", lambda value: isinstance(value, bool)),
    "int": _WHOLE,
    "int | None": _WHOLE.or_none(),
    "float": Kind("a number (int or float)", _is_number),
    "str": _TEXT,
    "str | None": _TEXT.or_none(),
    "str | Sequence[str] | None": Kind(
        "text (str), or a list of texts",
        lambda value: _is_text(value) or _list_of(_is_text)(value),
    ).or_none(),
    "Mapping[str, str]": Kind("a mapping of text to text, such as a dict", _is_text_by_text),
    **{name: _choice(kind) for name, kind in _ENUMS.items()},
    "Schema[Any] | None": _SCHEMA.or_none(),
    "Authentication | None": _object(
        "client.security.authentication", "Authentication", "an"
    ).or_none(),
    "CryptoKeyReader | None": _CRYPTO_KEY_READER.or_none(),
    "ConsumerBatchReceivePolicy": _object(
        "client.receiving.batch_receive", "ConsumerBatchReceivePolicy"
    ),
    "ConsumerKeySharedPolicy | None": _object(
        "client.consuming.key_shared_policy", "ConsumerKeySharedPolicy"
    ).or_none(),
    "ConsumerDeadLetterPolicy | None": _object(
        "client.consuming.dead_letter", "ConsumerDeadLetterPolicy"
    ).or_none(),
    "RedeliveryBackoff | None": _BACKOFF.or_none(),
    "ConsumerEventListener | None": _EVENT_LISTENER.or_none(),
    "ConnectionListener | None": _CONNECTION_LISTENER.or_none(),
    "Sequence[ConsumerInterceptor]": Kind(
        "a list of ConsumerInterceptors", _list_of(_having("before_consume", "on_acknowledge"))
    ),
    "Sequence[ProducerInterceptor]": Kind(
        "a list of ProducerInterceptors", _list_of(_having("eligible", "before_send"))
    ),
    "Sequence[tuple[int, int] | KeyHashRange] | None": _RANGES.or_none(),
    "Callable[[Any, Message], Awaitable[None] | None] | None": _FUNCTION.or_none(),
    "MessageRouterFunction | None": _FUNCTION.or_none(),
    "ChunkListener | None": _FUNCTION.or_none(),
    "ProblemListener | None": _FUNCTION.or_none(),
}
"""Annotation of a field, as it is written -> the values it accepts; a test finds gaps."""

_TOPICS = Kind(
    "a topic (str), a list of topics, or a compiled pattern (re.compile)",
    lambda value: isinstance(value, str | re.Pattern) or _list_of(_is_text)(value),
)
_SERVICE_URL = Kind(
    "a URL (str), or a ServiceUrlProvider",
    lambda value: _is_text(value) or _having("initial_service_url", "start", "close")(value),
)
_START = Kind(
    "a MessageId, a mapping of partitions to MessageIds",
    lambda value: isinstance(value, MessageId) or _is_id_by_text(value),
).or_none()
_SEEK_TARGET = Kind(
    "a MessageId, milliseconds since 1970 (int, not below 0), a mapping of topics to MessageIds, "
    "or a function of the topic",
    lambda value: (
        isinstance(value, MessageId)
        or (isinstance(value, int) and not isinstance(value, bool) and value >= 0)
        or _is_id_by_text(value)
        or (callable(value) and not isinstance(value, type))
    ),
)
_DELAY = Kind(
    "a timedelta that is not negative",
    lambda value: isinstance(value, timedelta) and value >= timedelta(0),
)


def _is_id_by_text(value: object) -> bool:
    return isinstance(value, Mapping) and all(
        isinstance(name, str) and isinstance(each, MessageId) for name, each in value.items()
    )
