"""Resolves AVRO values of one definition into what Arrow takes for another (pure).

fastavro reads values as they were written, by a definition that makes it name the branches of
unions (`reading_definition`). For each writer the functions are found once that make the writer's
values the reader's, or none where Arrow takes the values as they are: they look up fields by name,
give defaults to fields that are missing, and promote numbers; `units` has those for logical types.
Arrow leaves out the fields that only the writer has.

Each of the writer's fields is read as one of the reader's at most. Fields of the same name belong
together first; the reader's other fields then take, in their order and by their aliases, those of
the writer's that are left. If none is left for one of them, a field that already has one passes it
on and takes another that its own aliases name: so, if fields a and b were renamed to b and c, both
are found. Java's Avro renames all that was written under an alias, even if the reader has a field
of that very name.

A value goes into the first branch of a union that has the writer's own kind and name, else into the
first one that the writer's type is promoted to. If a branch of the writer's union fits no type of
the reader's, only values of that branch are errors.

Source: the Avro 1.11 specification, schema resolution; Resolver in Avro's Java.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from pulsar_py.common.errors import SchemaSerializationError
from pulsar_py.schema.avro.avro_codec import AvroReader
from pulsar_py.schema.avro.avro_nodes import AvroNode
from pulsar_py.spark.avro.conversions import Convert, both, each, each_item, in_record, null_or
from pulsar_py.spark.avro.reading_definition import BRANCH_FIELD, definition_for_reading
from pulsar_py.spark.avro.shapes import Shape
from pulsar_py.spark.avro.units import change_of_unit

__all__ = ["ResolvedReader"]

_PROMOTIONS: Final[Mapping[tuple[str, str], Convert | None]] = {
    ("int", "long"): None,
    ("int", "float"): float,
    ("int", "double"): float,
    ("long", "float"): float,
    ("long", "double"): float,
    ("float", "double"): None,
    ("string", "bytes"): str.encode,
    ("bytes", "string"): bytes.decode,
}


class ResolvedReader:
    """Reads values that one definition wrote as values that Arrow takes for a shape."""

    def __init__(self, writer: AvroNode, reader: AvroNode, shape: Shape) -> None:
        """Find the conversions; `shape` is the reader's, and `writer` may be the same node.

        Raises:
            InvalidConfigurationError: The writer's definition can't be used.
            SchemaSerializationError: No value of the writer is of the reader's type.
        """
        definition, branch_names = definition_for_reading(writer)
        self._read = AvroReader(definition).read
        # Converts the values that fastavro reads; None: Arrow takes them as they are.
        self.convert = _Resolution(writer, branch_names).resolve(writer, reader, shape)

    def read(self, payloads: Sequence[bytes | None]) -> list[Any]:
        """The value of each payload, None for None.

        Raises:
            SchemaSerializationError: Bytes don't fit the writer's definition.
            ValueError, TypeError, ArithmeticError, KeyError: A value doesn't fit the reader's.
        """
        # Hot path: AVRO with what is nested in benchmarks.micro_spark.
        read, convert = self._read, self.convert
        if convert is None:
            return [None if each is None else read(each) for each in payloads]
        return [None if each is None else convert(read(each)) for each in payloads]


class _Resolution:
    """Makes the functions for one writer's types.

    Each takes all values of the writer's type, null too where that is a union with null.
    """

    def __init__(self, root: AvroNode, branch_names: Mapping[int, Sequence[str]]) -> None:
        self._root = root
        # The names of the records around branches, by identity of the union.
        self._branch_names = branch_names
        self._known: dict[tuple[int, int, int], Convert | None] = {}

    def resolve(self, writer: AvroNode, reader: AvroNode, shape: Shape) -> Convert | None:
        key = (id(writer), id(reader), id(shape))
        if key not in self._known:
            self._known[key] = self._made(writer, reader, shape)
        return self._known[key]

    def _made(self, writer: AvroNode, reader: AvroNode, shape: Shape) -> Convert | None:
        if writer.kind == "union":
            return self._of_union(writer, reader, shape)
        if reader.kind == "union":
            return self._into_union(writer, reader, shape)
        if not self._go_together(writer, reader):
            raise _mismatch(writer, reader)
        return self._of_kind(writer, reader, shape)

    def _of_kind(self, writer: AvroNode, reader: AvroNode, shape: Shape) -> Convert | None:
        convert: Convert | None
        match writer.kind:
            case "record":
                convert = self._record(writer, reader, shape)
            case "array":
                convert = each(self._child(writer, reader, shape))
            case "map":
                convert = each_item(self._child(writer, reader, shape))
            case "enum":
                convert = _symbols(writer, reader)
            case kind:
                promotion = _PROMOTIONS.get((kind, reader.kind))
                number = both(promotion, change_of_unit(writer, reader))
                convert = both(number, shape.of_bytes)
        return convert

    def _go_together(self, writer: AvroNode, reader: AvroNode) -> bool:
        if writer.kind != reader.kind:
            return (writer.kind, reader.kind) in _PROMOTIONS
        if not writer.is_named or writer is reader:
            return True
        if writer.kind == "fixed" and writer.text["size"] != reader.text["size"]:
            return False
        # Names are compared without namespaces: Java's are packages, other languages have none.
        short = _short(writer.name)
        aliases = {_short(each) for each in reader.text.get("aliases", ())}
        is_outermost = writer is self._root and writer.kind == "record"
        return is_outermost or short == _short(reader.name) or short in aliases

    def _child(self, writer: AvroNode, reader: AvroNode, shape: Shape) -> Convert | None:
        return self.resolve(writer.children[0], reader.children[0], shape.children[0])

    # --- records -----------------------------------------------------------------------------

    def _record(self, writer: AvroNode, reader: AvroNode, shape: Shape) -> Convert | None:
        written = {
            text["name"]: child for text, child in zip(writer.fields, writer.children, strict=True)
        }
        sources = _sources(written, reader)
        renamed: list[tuple[str, str]] = []
        converts: list[tuple[str, Convert]] = []
        fills: list[tuple[str, Any]] = []
        for text, child, kind in zip(reader.fields, reader.children, shape.children, strict=True):
            name = text["name"]
            source = sources.get(name)
            if source is None:
                fills.append((name, _default_of(reader, text, shape, sources)))
                continue
            if source != name:
                renamed.append((source, name))
            try:
                convert = self.resolve(written[source], child, kind)
            except SchemaSerializationError as error:
                raise SchemaSerializationError(f"{name}: {error}") from None
            if convert is not None:
                converts.append((name, convert))
        fills = [each for each in fills if each[1] is not None]
        return _record_convert(reader.name, renamed, converts, fills)

    # --- unions ------------------------------------------------------------------------------

    def _of_union(self, writer: AvroNode, reader: AvroNode, shape: Shape) -> Convert | None:
        others = writer.others
        converts = [self._of_branch(each, reader, shape) for each in others]
        convert: Convert | None = None
        if len(others) > 1:
            names = self._branch_names[id(writer)]
            convert = _of_branches(dict(zip(names, converts, strict=True)))
        elif others:
            convert = both(_second if others[0].is_named else None, converts[0])
        if len(others) == len(writer.children):
            return convert
        return null_or(convert) if _takes_null(reader) else _never_null(convert)

    def _of_branch(self, writer: AvroNode, reader: AvroNode, shape: Shape) -> Convert | None:
        try:
            return self.resolve(writer, reader, shape)
        except SchemaSerializationError as error:
            return _refusal(str(error))

    def _into_union(self, writer: AvroNode, reader: AvroNode, shape: Shape) -> Convert | None:
        if writer.kind == "null" and _takes_null(reader):
            return None
        branch = self._branch_for(writer, reader)
        if not shape.members:
            return self.resolve(writer, branch, shape)
        index = [id(each) for each in reader.others].index(id(branch))
        return _member(f"member{index}", self.resolve(writer, branch, shape.members[index]))

    def _branch_for(self, writer: AvroNode, reader: AvroNode) -> AvroNode:
        branches = reader.others
        by_closeness = (
            [each for each in branches if each is writer],
            [each for each in branches if _is_same(writer, each)],
            [each for each in branches if each.kind == writer.kind],
            branches,
        )
        for group in by_closeness:
            for branch in group:
                if self._go_together(writer, branch):
                    return branch
        raise _mismatch(writer, reader)


def _is_same(writer: AvroNode, reader: AvroNode) -> bool:
    return writer.kind == reader.kind and writer.name == reader.name


def _takes_null(node: AvroNode) -> bool:
    return node.kind == "null" or any(each.kind == "null" for each in node.children)


def _short(name: str) -> str:
    return name.rpartition(".")[2]


def _mismatch(writer: AvroNode, reader: AvroNode) -> SchemaSerializationError:
    return SchemaSerializationError(
        f"written as {_shown(writer)}, which can't be read as {_shown(reader)}"
    )


def _shown(node: AvroNode) -> str:
    if node.kind == "union":
        return " or ".join(_shown(each) for each in node.children)
    return f"{node.kind} {node.name}" if node.name else node.kind


def _sources(written: Collection[str], reader: AvroNode) -> Mapping[str, str]:
    """The writer's field for each of the reader's that has one; each is taken once at most."""
    wanted = {
        text["name"]: [each for each in (text["name"], *text.get("aliases", ())) if each in written]
        for text in reader.fields
    }
    sources = {name: name for name in wanted if name in written}
    holders = dict(sources)
    for name in wanted:
        if name in sources:
            continue
        # A breadth-first search for an augmenting path of a bipartite matching: a field without a
        # source asks for those that its aliases name; a field that holds one of these asks for
        # another, and so on, until a source is free.
        asking = [name]
        asked: dict[str, str] = {}
        for asker in asking:
            new = [each for each in wanted[asker] if each not in asked]
            asked.update(dict.fromkeys(new, asker))
            if (free := next((each for each in new if each not in holders), None)) is not None:
                _hand_on(free, asked, sources, holders)
                break
            asking += [holders[each] for each in new]
    return sources


def _hand_on(
    free: str, asked: Mapping[str, str], sources: dict[str, str], holders: dict[str, str]
) -> None:
    """Pass sources along the chain: each asker gets one, and gives away the one that it had."""
    given: str | None = free
    while given is not None:
        asker = holders[given] = asked[given]
        had = sources.get(asker)
        sources[asker] = given
        given = had


def _default_of(
    reader: AvroNode, text: Mapping[str, Any], shape: Shape, sources: Mapping[str, str]
) -> Any:
    name = text["name"]
    if name in shape.defaults:
        return shape.defaults[name]
    holders = {source: holder for holder, source in sources.items()}
    taken = next((each for each in text.get("aliases", ()) if each in holders), None)
    what = "was not written" if taken is None else f"{taken!r} goes into {holders[taken]!r}"
    why = shape.bad_defaults.get(name, f"{what}, and {reader.name} has no default for it")
    raise SchemaSerializationError(f"{name}: {why}")


# --- functions -----------------------------------------------------------------------------------


def _second(pair: tuple[str, Any]) -> Any:
    """The value of a pair: fastavro gives named types in unions as pairs of name and value."""
    return pair[1]


def _symbols(writer: AvroNode, reader: AvroNode) -> Convert | None:
    known = frozenset(reader.text["symbols"])
    if known.issuperset(writer.text["symbols"]):
        return None
    default = reader.text.get("default")

    def symbol(value: str) -> str:
        if value in known:
            return value
        if default is None:
            raise ValueError(f"{value!r:.100} is not a symbol of {reader.name}")
        return str(default)

    return symbol


def _record_convert(
    record: str,
    renamed: Sequence[tuple[str, str]],
    converts: Sequence[tuple[str, Convert]],
    fills: Sequence[tuple[str, Any]],
) -> Convert | None:
    if not renamed and not fills:
        return in_record(converts, record)

    def complete(values: dict[str, Any]) -> dict[str, Any]:
        """Renames and fills in place: the dicts were just read, and have no other user."""
        try:
            moved = [(name, values.pop(source)) for source, name in renamed]
        except KeyError as error:
            raise ValueError(f"{error.args[0]}: a value of {record} has no {error}") from error
        values.update(moved)
        values.update(fills)
        return values

    return both(complete, in_record(converts, record))


def _of_branches(converts: Mapping[str, Convert | None]) -> Convert:
    """Unwraps the records around branches, and converts their values."""

    def value_of(pair: tuple[str, dict[str, Any]]) -> Any:
        name, record = pair
        convert = converts[name]
        return record[BRANCH_FIELD] if convert is None else convert(record[BRANCH_FIELD])

    return value_of


def _member(name: str, convert: Convert | None) -> Convert:
    if convert is None:
        return lambda value: {name: value}
    return lambda value: {name: convert(value)}


def _never_null(convert: Convert | None) -> Convert:
    def value_of(value: Any) -> Any:
        if value is None:
            raise ValueError("null was written, and the reader's type has no null")
        return value if convert is None else convert(value)

    return value_of


def _refusal(text: str) -> Convert:
    def refuse(value: Any) -> Any:
        raise ValueError(f"{text}: {value!r:.100}")

    return refuse
