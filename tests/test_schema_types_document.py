"""Each row of the tables in `docs/client/SCHEMAS.md` is what schemas do."""

from __future__ import annotations

import dataclasses
import enum
import json
import pathlib
import re
from datetime import timedelta
from typing import Any, Generic, TypeVar
from uuid import uuid4

import pydantic
import pytest

from pulsar_py.common.errors import InvalidConfigurationError
from pulsar_py.schema import AvroSchema, JsonSchema
from tests.package_source import ROOT

TEXT = (ROOT / "docs" / "client" / "SCHEMAS.md").read_text("utf-8")
CLASSES = TEXT.split("Of the classes\n")[1].split("```python\n")[1].split("```")[0]
T = TypeVar("T")


class Permission(enum.Flag):
    READ = 1


@dataclasses.dataclass
class Box(Generic[T]):
    it: T


class Loose(pydantic.BaseModel):
    model_config = {"extra": "allow"}


class Names(pydantic.RootModel[list[str]]):
    pass


def run(code: str, space: dict[str, Any]) -> None:
    """Run code of the document, whose annotations are evaluated, unlike those of this module."""
    exec(compile(code, "SCHEMAS.md", "exec", dont_inherit=True), space)


def names() -> dict[str, Any]:
    """What the cells of the tables name."""
    space: dict[str, Any] = {
        "Any": Any,
        "Box": Box,
        "HttpUrl": pydantic.HttpUrl,
        "Loose": Loose,
        "Names": Names,
        "Path": pathlib.Path,
        "Permission": Permission,
        "SecretStr": pydantic.SecretStr,
        "timedelta": timedelta,
        "uuid4": uuid4,
        "__name__": __name__,
    }
    run(CLASSES, space)
    globals().update({name: space[name] for name in ("Tree", "Address")})  # it names itself
    return space


SPACE = names()


def table(after: str) -> list[list[str]]:
    """The cells of the table that follows a text."""
    lines = TEXT.split(after, 1)[1].split("| --- |", 1)[1].splitlines()[1:]
    rows = []
    for line in lines:
        if not line.startswith("|"):
            break
        cells = re.split(r"(?<!\\)\|", line.strip("|"))
        rows.append([cell.strip().replace("\\|", "|") for cell in cells])
    return rows


def codes(cell: str) -> list[str]:
    return re.findall(r"`([^`]*)`", cell)


def holder(annotation: Any) -> type:
    return dataclasses.make_dataclass("Holder", [("it", annotation)])


TYPES = [
    (annotation, *(codes(cell)[0] for cell in row[1:]))
    for row in table("each type becomes")
    for annotation in codes(row[0])
]
DEFAULTS = [tuple(codes(cell)[0] for cell in row) for row in table("A default is part")]
REFUSED = table("## What is refused")


def test_the_tables_are_there() -> None:
    assert len(TYPES) > 40
    assert len(REFUSED) > 15


@pytest.mark.parametrize(("annotation", "value", "avro", "in_json"), TYPES)
def test_a_type_becomes_what_the_table_says_and_comes_back(
    annotation: str, value: str, avro: str, in_json: str
) -> None:
    owner = holder(eval(annotation, SPACE))
    given = eval(value, SPACE)
    if annotation.startswith("frozenset"):
        given = frozenset(given)
    schemas = AvroSchema(owner), JsonSchema(owner)

    for schema in schemas:
        definition = json.loads(schema.schema_info().data)
        assert definition["fields"] == [{"name": "it", "type": json.loads(avro)}]
        back = schema.decode(schema.encode(owner(given))).it
        assert back == given
        assert type(back) is type(given)
    assert json.loads(schemas[1].encode(owner(given))) == {"it": json.loads(in_json)}


@pytest.mark.parametrize(("field", "avro"), DEFAULTS)
def test_a_default_is_what_the_table_says(field: str, avro: str) -> None:
    run(f"@dataclass\nclass Holder:\n    {field}", SPACE)

    for schema in (AvroSchema(SPACE["Holder"]), JsonSchema(SPACE["Holder"])):
        definition = json.loads(schema.schema_info().data)
        assert definition["fields"] == [json.loads(avro)]
        back = schema.decode(schema.encode(held := SPACE["Holder"]()))
        assert back == held


@pytest.mark.parametrize(("annotation", "instead"), REFUSED, ids=[row[0] for row in REFUSED])
def test_what_is_refused_says_what_to_use(annotation: str, instead: str) -> None:
    owner = holder(eval(codes(annotation)[0], SPACE))

    with pytest.raises(InvalidConfigurationError, match=r"Holder\.it: .*" + re.escape(instead)):
        JsonSchema(owner)
    if "JsonSchema" in annotation:
        AvroSchema(owner)
    else:
        with pytest.raises(InvalidConfigurationError, match=re.escape(instead)):
            AvroSchema(owner)
