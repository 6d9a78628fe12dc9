"""The line for spark-submit."""

from __future__ import annotations

import pytest

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.pipeline.submit import submit_line, without_own


def test_the_session_is_spark_submits_and_the_rest_is_ours() -> None:
    arguments = [
        "export",
        "--master",
        "local",
        "--where",
        "a = 'b'",
        "--print-submit",
        "--conf=x=y",
    ]
    line = submit_line("/lib/main.py", arguments, master="spark://h:7077", conf={"x": "y z"})
    assert line == (
        "spark-submit --master spark://h:7077 --conf 'x=y z' /lib/main.py export --where"
        """ 'a = '"'"'b'"'"''"""
    )


def test_an_option_without_its_value() -> None:
    with pytest.raises(ConfigurationError, match="--conf"):
        without_own(["export", "--conf"])
