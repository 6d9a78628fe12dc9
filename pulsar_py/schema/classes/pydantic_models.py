"""Describes pydantic's models as records: fields, aliases, defaults, validation (pure).

pydantic is not needed: what somebody gives is a model only if the program has loaded it. Fields
have the names that Python code uses, whatever their aliases are. What is read is validated by the
model, so a payload that the model refuses is an error of the schema.

Source: the documentation of pydantic 2, models and fields.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator
from datetime import date, datetime
from typing import Annotated, Any, Final

from pulsar_py.common.errors import InvalidConfigurationError
from pulsar_py.schema.classes.annotations import LocalTimestamp
from pulsar_py.schema.values.record_types import ObjectType
from pulsar_py.schema.values.value_types import MisfitError

__all__ = ["ModelType", "decimal_digits", "model_fields", "model_name", "underlying_type"]

_UNDERLYING: Final[dict[str, Any]] = {  # Any: types, and what `Annotated` makes
    "pydantic.types.AwareDatetime": datetime,
    "pydantic.types.FutureDate": date,
    "pydantic.types.FutureDatetime": datetime,
    "pydantic.types.NaiveDatetime": LocalTimestamp,
    "pydantic.types.PastDate": date,
    "pydantic.types.PastDatetime": datetime,
    "pydantic.networks.EmailStr": str,
}
"""Classes that only annotate: values are of these types."""


def model_fields(owner: Any) -> Callable[[], Iterator[dict[str, Any]]] | None:
    """Makes the arguments of a `ClassField` for each field of a model; None if it is no model.

    Raises:
        InvalidConfigurationError: A model of a kind whose values would not come back whole.
    """
    pydantic = sys.modules.get("pydantic")
    if pydantic is None or not issubclass(owner, pydantic.BaseModel) or owner is pydantic.BaseModel:
        return None
    if issubclass(owner, pydantic.RootModel):
        raise InvalidConfigurationError(
            f"{owner.__name__} is a RootModel, which has no fields: use the type within it, or a "
            "BaseModel with a field of that type"
        )
    if owner.model_config.get("extra") == "allow":
        raise InvalidConfigurationError(
            f"{owner.__name__} allows extra fields, which no schema names, so they would be lost: "
            'use extra="forbid" or "ignore", and a field of type dict[str, X] for them'
        )
    return lambda: _fields(owner)


def _fields(owner: Any) -> Iterator[dict[str, Any]]:
    if not owner.__pydantic_complete__:
        try:
            owner.model_rebuild()
        except NameError as error:
            name = getattr(error, "name", None) or str(error).partition("\n")[0]
            raise InvalidConfigurationError(
                f"{owner.__name__}: {name} is not defined where the model is; import it there, and "
                "have classes of fields at a module's top level"
            ) from None
    for name, field in owner.model_fields.items():
        is_required = field.is_required()
        if field.exclude:
            if is_required:
                raise InvalidConfigurationError(
                    f"{owner.__name__}.{name} is excluded and has no default, so values would not "
                    "come back: give it a default, or leave `exclude` to `model_dump`"
                )
            continue
        annotation = field.annotation
        if field.metadata:
            annotation = Annotated[(annotation, *field.metadata)]
        factory = field.default_factory
        if factory is not None and getattr(field, "default_factory_takes_validated_data", False):
            factory = object  # another default each time: it depends on other fields
        yield {
            "name": name,
            "annotation": annotation,
            "has_default": not is_required,
            "default": None if is_required or factory else field.default,
            "factory": factory,
        }


def model_name(owner: type) -> str:
    """The class's name; `Page_Order` for `Page[Order]`."""
    return re.sub(r"\W+", "_", owner.__name__).strip("_")


def underlying_type(owner: type) -> Any:
    """The type of the values of one of pydantic's classes for annotations; None for others."""
    return _UNDERLYING.get(f"{owner.__module__}.{owner.__qualname__}")


def decimal_digits(metadata: Iterable[Any]) -> tuple[int, int] | None:
    """Digits of a decimal in all, and after the point, if pydantic's `Field` limits both."""
    found: dict[str, int] = {}
    for each in metadata:
        for part in (each, *getattr(each, "metadata", ())):
            for name in ("max_digits", "decimal_places"):
                limit = getattr(part, name, None)
                if isinstance(limit, int):
                    found[name] = limit
    return (found["max_digits"], found["decimal_places"]) if len(found) == 2 else None  # noqa: PLR2004 - both


class ModelType(ObjectType):
    """Objects of a model, validated by it when they are read."""

    def __init__(self, name: str, namespace: str | None, owner: Any) -> None:
        super().__init__(name, namespace, owner)
        self._model = owner
        # Field -> the name by which the model takes it.
        self._keys = {
            field: _key_of(owner, field, each) for field, each in owner.model_fields.items()
        }

    def put_together(self, values: dict[str, Any]) -> Any:
        """See `RecordType`."""
        try:
            return self._model.model_validate(
                {self._keys[name]: item for name, item in values.items()}
            )
        except ValueError as error:
            raise MisfitError(f"{self._model.__name__} refuses: {_text_of(error)}") from error


def _key_of(owner: Any, name: str, field: Any) -> str:
    alias = field.validation_alias
    if alias is None or owner.model_config.get("populate_by_name"):
        return name
    if isinstance(alias, str):
        return alias
    for choice in getattr(alias, "choices", ()):
        if isinstance(choice, str):
            return choice
    raise InvalidConfigurationError(
        f"{owner.__name__}.{name} is validated from a path, {alias!r}: set populate_by_name=True, "
        "or use a name as the alias"
    )


def _text_of(error: ValueError) -> str:
    """Pydantic's error in one line: each field, and what is wrong with it."""
    details = getattr(error, "errors", None)
    if details is None:
        return str(error)
    return "; ".join(
        f"{'.'.join(map(str, each['loc'])) or 'the whole'}: {each['msg']}" for each in details()
    )
