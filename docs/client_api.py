"""The client's API reference, made from signatures and docstrings.

`python -m docs.generate` (`make docs`) writes `docs/client/API.md`; a test fails when it is stale.
Everything public is in it: the names of `pulsar_py`, `pulsar_py.schema` and `pulsar_py.telemetry`,
in the order of a reader's questions, each with its constructor, methods, fields and members.
Nothing is imported but what is documented.
"""  # noqa: INP001 - tools of the checkout, no package

from __future__ import annotations

import ast
import dataclasses
import enum
import inspect
import itertools
import re
import textwrap
from collections import Counter
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, get_origin, get_overloads, is_typeddict

import pulsar_py
import pulsar_py.schema
import pulsar_py.telemetry
from pulsar_py.schema.public_names import MODULES

PATH = Path("docs/client/API.md")
LINE_LENGTH = 120

SECTIONS: dict[str, tuple[str, ...]] = {
    "Clients": (
        "Client", "ClientOptions", "ClientConfig", "ClientStatistics", "ConnectionListener",
        "Clock",
    ),
    "Producing": (
        "Producer", "PartitionedProducer", "ProducerOptions", "ProducerConfig", "SendResult",
        "MessageRouterFunction", "ProducerInterceptor", "OutgoingMessage", "ProducerStatistics",
    ),
    "Consuming": (
        "Consumer", "MultiTopicsConsumer", "PatternConsumer", "AnyConsumer", "ConsumerOptions",
        "ConsumerOptionsWithoutSchema",
        "ConsumerConfig", "Message",
        "ConsumerBatchReceivePolicy", "ConsumerDeadLetterPolicy", "ConsumerKeySharedPolicy",
        "KeyHashRange", "RedeliveryBackoff", "MultiplierRedeliveryBackoff",
        "ConsumerEventListener", "ConsumerInterceptor",
        "ConsumerStatistics", "BrokerConsumerStatistics",
    ),
    "Reading": (
        "Reader", "ReaderOptions", "ReaderConfig", "TableView", "TableViewOptions",
        "TableViewListener",
    ),
    "Message ids": (
        "MessageId", "ReceivedMessageId", "TopicMessageId", "MultiMessageId", "SeekTarget",
    ),
    "Schemas": (),
    "Security": (
        "Authentication", "AuthenticationToken", "TokenSupplier", "AuthenticationBasic",
        "AuthenticationTLS", "AuthenticationOauth2", "CryptoKeyReader", "KeyAnswer",
        "EncryptionKeyInfo", "EncryptionContext", "EncryptionKey",
    ),
    "Clusters": (
        "ServiceInfo", "ServiceUrlProvider", "ServiceUrlControl", "AutoClusterFailover",
        "ControlledClusterFailover",
    ),
    "Telemetry": (),
    "Choices": (),
    "Errors": (),
}  # fmt: skip
"""Where a name stands; those of schemas and telemetry, enumerations and errors find their place by
themselves."""

UNEXPORTED = {
    "ClientConfig": "pulsar_py.client.brokers.client_config",
    "ProducerConfig": "pulsar_py.client.producing.producer_config",
    "ConsumerConfig": "pulsar_py.client.consuming.consumer_config",
    "ReaderConfig": "pulsar_py.client.reading.reader_config",
}
"""Documented because options stand there, though nobody has to import them."""

CHOSEN_OF = {"TableViewOptions": "ReaderConfig"}
"""Options that are some of another class's fields, which says what they mean."""

NOT_OF_THE_CLIENT = {"Broker"}

INTERNAL = {
    "abandon", "accepted", "acknowledge_all", "blocks_if_full", "consumer", "copy", "encode_ahead",
    "flush_soon", "hands_out_runs", "has_interceptors", "open", "own", "peek", "pending_count",
    "pending_limit", "receiver", "redeliver", "redelivery_filter", "start", "statistics_fields",
    "submit_alone", "submit_plain_run", "submit_waiting", "take_statistics", "watch_room",
}  # fmt: skip
"""Methods of `MADE_BY_CLIENT` for parts of the package only."""

INTERNAL_MEMBERS = {
    "AutoClusterFailover.start", "AvroSchema.check_types", "AvroSchema.misfit",
    "AvroSchema.prepare", "BrokerConsumerStatistics.of", "Client.context",
    "ClientConfig.new_ssl_context", "ClientConfig.tls", "Consumer.ends", "Consumer.passed_key",
    "Consumer.receive_run", "ConsumerConfig.chunk_listener", "ConsumerConfig.keeps_batches",
    "ConsumerConfig.problem_listener", "ConsumerKeySharedPolicy.to_meta",
    "ConsumerDeadLetterPolicy.with_names", "ControlledClusterFailover.start",
    "EncryptionContext.of", "JsonSchema.check_types", "JsonSchema.misfit", "JsonSchema.prepare",
    "Message.metadata_among", "Message.of", "Message.own_metadata",
    "Message.single", "MessageId.from_data", "MessageId.position", "MessageId.to_data",
    "OutgoingMessage.batching_key", "OutgoingMessage.extra_bytes", "OutgoingMessage.is_plain",
    "ProducerConfig.of", "ReaderConfig.is_start_by_time", "ReaderConfig.to_consumer_config",
    "SchemaInfo.from_wire", "SchemaInfo.to_wire", "SchemaType.from_wire",
}  # fmt: skip
"""Members of other public classes for parts of the package only."""

MADE_BY_CLIENT = {
    "Producer", "PartitionedProducer", "Consumer", "MultiTopicsConsumer", "PatternConsumer",
    "Reader", "TableView", "Message", "ReceivedMessageId", "SendResult",
}  # fmt: skip


def render() -> str:
    """The text of `docs/client/API.md`."""
    lines = [
        "# API of the client",
        "",
        "Made from the code by `make docs`. All names can be imported from `pulsar_py`, those of",
        "schemas from `pulsar_py.schema`, unless a module is given. `pulsar_py.blocking` has the",
        "same without `await`, see [BLOCKING.md](BLOCKING.md). [GUIDE.md](GUIDE.md) shows how they",
        "go together.",
    ]
    lines += ["", *contents()]
    for title, names in sections().items():
        lines += ["", f"## {title}"]
        if title == "Errors":
            lines += ["", *error_table(names)]
            continue
        for name in names:
            lines += ["", *describe(name)]
    return "\n".join(lines) + "\n"


def contents() -> list[str]:
    """A line for each section, with links to all that is in it."""
    anchors: Counter[str] = Counter()
    lines = []
    anchor("API of the client", anchors)
    for title, names in sections().items():
        line = f"- [{title}](#{anchor(title, anchors)})"
        if title != "Errors":  # one table
            links = [f"[{name}](#{anchor(heading(name), anchors)})" for name in names]
            line += ": " + ", ".join(links)
        lines.append(line)
    return lines


def anchor(text: str, before: Counter[str]) -> str:
    """What a heading's link is called; those that come again are numbered."""
    slug = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
    before[slug] += 1
    return slug if before[slug] == 1 else f"{slug}-{before[slug] - 1}"


def heading(name: str) -> str:
    """The name, and where it is if it can't be imported from `pulsar_py`."""
    module = "pulsar_py.telemetry" if name in pulsar_py.telemetry.__all__ else UNEXPORTED.get(name)
    return f"`{name}`" + (f" (`{module}`)" if module else "")


def main() -> None:
    """Write the file."""
    PATH.parent.mkdir(exist_ok=True)
    PATH.write_text(render(), encoding="utf-8")


def sections() -> dict[str, list[str]]:
    """Titles and names, with everything public in one of them."""
    found = {title: list(names) for title, names in SECTIONS.items()}
    placed = {name for names in found.values() for name in names} | NOT_OF_THE_CLIENT
    found["Schemas"] = sorted(pulsar_py.schema.__all__)
    found["Telemetry"] = sorted(pulsar_py.telemetry.__all__)
    placed |= {*found["Schemas"], *found["Telemetry"]}
    for name in sorted(set(pulsar_py.__all__) - placed):
        found[_section_of(getattr(pulsar_py, name))].append(name)
    return found


def _section_of(thing: Any) -> str:  # Any: whatever is public
    if isinstance(thing, type) and issubclass(thing, BaseException):
        return "Errors"
    if isinstance(thing, type) and issubclass(thing, enum.Enum):
        return "Choices"
    raise LookupError(f"{thing.__name__}: no section has it, see SECTIONS in docs/client_api.py")


def get(name: str) -> Any:  # Any: whatever is public
    """The class or function."""
    home = UNEXPORTED.get(name)
    if home:
        return getattr(import_module(home), name)
    packages = (pulsar_py, pulsar_py.schema, pulsar_py.telemetry)
    return getattr(next(package for package in packages if name in package.__all__), name)


def home_of(name: str) -> Any:  # Any: a module
    """The module that defines a public name."""
    found = pulsar_py._HOMES.get(name)  # noqa: SLF001 - the table of all names
    return import_module(found or f"pulsar_py.schema.{MODULES[name]}")


def _alias(name: str) -> tuple[str, str]:
    """How an alias of types is written, and the text below it."""
    source = inspect.getsource(home_of(name))
    body = ast.parse(source).body
    for node in body:
        target = getattr(node, "target", None) or getattr(node, "targets", [None])[0]
        value = getattr(node, "value", None)
        if isinstance(target, ast.Name) and target.id == name and value is not None:
            written = ast.get_source_segment(source, value) or ""
            return re.sub(r'"([A-Z]\w*)"', r"\1", written), _texts_below_assignments(body).get(
                name, ""
            )
    raise LookupError(f"{name}: no such assignment in {home_of(name)}")


def alias_source(name: str) -> str:
    """The types that an alias stands for, as its module writes them."""
    return _alias(name)[0]


def alias_text(name: str) -> str:
    """What an alias is for."""
    return _alias(name)[1]


def describe(name: str) -> list[str]:
    """A class or function with all that belongs to it."""
    thing = get(name)
    lines = [f"### {heading(name)}", ""]
    if get_origin(thing) is not None:
        return [*lines, *code(f"{name} = {alias_source(name)}"), "", alias_text(name)]
    if not isinstance(thing, type):
        return [*lines, *code(signature(name, thing)), "", *prose(thing)]
    is_enum = issubclass(thing, enum.Enum)
    is_record = dataclasses.is_dataclass(thing)
    if not is_enum and not is_record and (function := constructor(thing)) is not None:
        ways = get_overloads(function) or [function]
        lines += [*code("\n".join(signature(name, way) for way in ways)), ""]
        lines += [*prose(thing), *below(prose(function) if function.__doc__ else [])]
    else:
        lines += prose(thing)
    bases = [f"`{base.__name__}`" for base in thing.__bases__ if base.__name__ in documented()]
    if bases:
        lines += ["", f"With everything that {', '.join(bases)} has."]
    if is_enum:
        lines += ["", *member_list(thing)]
    elif is_record:
        lines += ["", *field_table(thing)]
    elif name in CHOSEN_OF:
        lines += ["", *field_table(get(CHOSEN_OF[name]), thing)]
    for method_name, method in methods(thing):
        lines += ["", *describe_method(method_name, method)]
    return lines


def constructor(thing: type) -> Any:  # Any: a function
    """What users make one with, be it a base's that is not documented; None: they make none."""
    for base in thing.__mro__:
        if base is not thing and (base.__name__ in documented() or not is_ours(base)):
            return None
        if "__init__" in vars(base):
            return None if takes_context(thing) else vars(base)["__init__"]
    return None


def below(lines: list[str]) -> list[str]:
    """Under something else, if there are any."""
    return ["", *lines] if lines else []


def is_ours(base: type) -> bool:
    """Whether it is of this package."""
    return base.__module__.startswith("pulsar_py")


def takes_context(thing: type) -> bool:
    """Whether it is made by the client and not by users."""
    if thing.__name__ in MADE_BY_CLIENT:
        return True
    return "context" in inspect.signature(thing).parameters or inspect.isabstract(thing)


def methods(thing: type) -> list[tuple[str, Any]]:  # Any: function, property, class method
    """Public ones with a docstring, also of bases that are not documented, in source order."""
    found: dict[str, Any] = {}
    for base in reversed(thing.__mro__):
        is_elsewhere = base is not thing and base.__name__ in documented()
        if not is_ours(base) or is_elsewhere:
            continue
        for name, value in vars(base).items():
            is_one = isinstance(value, property | classmethod | staticmethod) or callable(value)
            is_internal = (
                name.startswith("_")
                or (thing.__name__ in MADE_BY_CLIENT and name in INTERNAL)
                or f"{thing.__name__}.{name}" in INTERNAL_MEMBERS
            )
            if not is_internal and is_one and not isinstance(value, type):
                found[name] = value
    return [(name, value) for name, value in found.items() if _is_for_users(value)]


def _is_for_users(value: Any) -> bool:  # Any: function, property, class method
    text = inspect.getdoc(_function(value)) or ""
    return bool(text) and "for parts of this package" not in text


@cache
def documented() -> set[str]:
    """All names that have a place."""
    return {name for names in sections().values() for name in names}


def _function(value: Any) -> Any:  # Any: function, property, class method
    if isinstance(value, property):
        return value.fget
    return getattr(value, "__func__", value)


def describe_method(name: str, value: Any) -> list[str]:  # Any: function, property, class method
    """One method, property or class method."""
    function = _function(value)
    if isinstance(value, property):
        returned = inspect.signature(function).return_annotation
        return [*code(f"{name}: {annotation(returned)}"), "", *prose(function)]
    return [*code(signature(name, function)), "", *prose(function)]


def annotation(value: Any) -> str:  # Any: an annotation, a text under `from __future__`
    """As it is written in the source."""
    return value if isinstance(value, str) else inspect.formatannotation(value)


def signature(name: str, function: Any) -> str:  # Any: any callable
    """`async def` where it is, without `self`, one line if it fits."""
    found = inspect.signature(function)
    parameters = [p for p in found.parameters.values() if p.name not in {"self", "cls"}]
    parts: list[str] = []
    for p in parameters:
        if p.kind is p.KEYWORD_ONLY and not any(
            part == "*" or part.startswith("*") for part in parts
        ):
            parts.append("*")
        parts.append(_parameter(p))
    is_async = inspect.iscoroutinefunction(function)
    returns = found.return_annotation
    end = "" if name[:1].isupper() or returns is found.empty else f" -> {annotation(returns)}"
    head = f"{'async ' if is_async else ''}{name}("
    line = f"{head}{', '.join(parts)}){end}"
    if len(line) <= LINE_LENGTH - 20:
        return line
    return f"{head}\n" + "".join(f"    {part},\n" for part in parts) + f"){end}"


def _parameter(p: inspect.Parameter) -> str:
    stars = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
    text = stars + p.name
    if p.annotation is not p.empty:
        text += f": {annotation(p.annotation)}"
    if p.default is not p.empty:
        text += f" = {default(p.default)}"
    return text


def default(value: Any) -> str:  # Any: any default
    """As it is written, and without addresses of objects."""
    if isinstance(value, enum.Enum):
        return f"{type(value).__name__}.{value.name}"
    text = "..." if value is ... else repr(value)
    return f"{type(value).__name__}()" if " at 0x" in text else text


def code(text: str) -> list[str]:
    """A block of code."""
    return ["```python", *text.splitlines(), "```"]


def prose(thing: Any) -> list[str]:  # Any: class or function
    """A docstring with its sections as lists."""
    lines: list[str] = []
    section = ""
    for line in (inspect.getdoc(thing) or "").splitlines():
        if found := re.fullmatch(r"(Args|Raises|Returns|Attributes|Yields):", line):
            section = found[1]
            if lines and lines[-1]:
                lines.append("")
            lines += [f"*{section}*", ""]
        elif not section or not line.strip():
            lines.append(line)
        elif line.startswith("    ") and not line.startswith("     "):
            name, colon, rest = line.strip().partition(": ")
            lines.append(f"- `{name}`: {rest}" if colon else f"- {line.strip()}")
        elif line.startswith(" "):
            lines.append("  " + line.strip())
        else:
            section = ""
            lines.append(line)
    return lines


def member_list(thing: type[enum.Enum]) -> list[str]:
    """Members with what stands below each."""
    texts = attribute_texts(thing)
    lines = []
    for member in thing:
        text = f": {texts[member.name]}" if member.name in texts else ""
        lines.append(f"- `{member.name}` = {member.value!r}{text}")
    return lines


def field_table(thing: Any, chosen: type | None = None) -> list[str]:  # Any: a dataclass
    """Fields with type, default and what stands below each.

    Only those that `chosen` annotates, if given; what stands below one there counts more.
    """
    own = attribute_texts(chosen) if chosen else {}
    texts = attribute_texts(thing) | own
    lines = ["| field | type | default | meaning |", "| --- | --- | --- | --- |"]
    for each in dataclasses.fields(thing):
        if each.name.startswith("_") or f"{thing.__name__}.{each.name}" in INTERNAL_MEMBERS:
            continue
        if chosen and each.name not in chosen.__annotations__:
            continue
        shown = ""
        if each.name in own:
            pass  # that says when
        elif each.default is not dataclasses.MISSING:
            shown = f"`{default(each.default)}`"
        elif each.default_factory is not dataclasses.MISSING:
            shown = f"`{default(each.default_factory())}`"
        kind = annotation(each.type).replace("|", "\\|")
        text = texts.get(each.name, "").replace("|", "\\|")
        lines.append(f"| `{each.name}` | `{kind}` | {shown} | {text} |")
    return lines


@cache
def attribute_texts(thing: type) -> dict[str, str]:
    """The strings below assignments in a class body, also those it inherits."""
    texts: dict[str, str] = {}
    # A typed dictionary's own bases are not among those that it is made of.
    written = [get_origin(base) or base for base in getattr(thing, "__orig_bases__", ())]
    typed = [base for base in written if is_typeddict(base)]
    for base in [*typed, *reversed(thing.__mro__)]:
        if not is_ours(base):
            continue
        tree = ast.parse(textwrap.dedent(inspect.getsource(base)))
        assert isinstance(tree.body[0], ast.ClassDef)
        texts |= _texts_below_assignments(tree.body[0].body)
    return texts


def _texts_below_assignments(body: list[ast.stmt]) -> dict[str, str]:
    texts = {}
    for before, node in itertools.pairwise(body):
        target = (
            before.targets[0] if isinstance(before, ast.Assign) else getattr(before, "target", None)
        )
        is_text = (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        )
        if is_text and isinstance(target, ast.Name):
            texts[target.id] = " ".join(inspect.cleandoc(node.value.value).split())  # type: ignore[union-attr, attr-defined]
    return texts


def error_table(names: list[str]) -> list[str]:
    """Errors with what they derive from."""
    lines = ["| error | is a | meaning |", "| --- | --- | --- |"]
    for name in names:
        error = getattr(pulsar_py, name)
        bases = ", ".join(f"`{base.__name__}`" for base in error.__bases__)
        text = (inspect.getdoc(error) or "").partition("\n\n")[0].replace("\n", " ")
        lines.append(f"| `{name}` | {bases} | {text} |")
    return lines
