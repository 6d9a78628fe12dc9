from __future__ import annotations

import subprocess
import sys

import pytest

import pulsar_py.schema
from pulsar_py.schema.public_names import MODULES


def test_the_table_has_all_public_names() -> None:
    assert set(MODULES) == set(pulsar_py.schema.__all__) == set(dir(pulsar_py.schema))


@pytest.mark.parametrize("name", sorted(MODULES))
def test_each_name_is_where_the_table_says(name: str) -> None:
    assert getattr(pulsar_py.schema, name) is not None


def test_other_names_are_refused() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = pulsar_py.schema.Nothing


def test_names_of_the_official_client_are_here() -> None:
    import pulsar.schema as official  # noqa: PLC0415 - slow to load

    classes = {
        name
        for name, value in vars(official).items()
        if isinstance(value, type) and value.__module__.startswith("pulsar.schema")
    }

    assert classes - set(MODULES) == set()


def test_a_text_schema_loads_no_avro() -> None:
    code = "import sys; from pulsar_py.schema import StringSchema; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    loaded = set(done.stdout.split())
    assert "fastavro" not in loaded
    assert "pulsar_py.schema.avro_schema" not in loaded
