"""The line for spark-submit."""

from __future__ import annotations

import pytest

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.pipeline.running.submit import submit_line, submit_note, without_own


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


def test_secrets_are_not_in_the_line_and_a_note_tells_what_to_do() -> None:
    arguments = ["export", "--token", "abcd", "--conf", "a.secret=xyz", "--print-submit"]
    conf = {"a.secret": "xyz"}
    line = submit_line("/m.py", arguments, master="spark://h:7077", conf=conf)
    assert line == (
        "spark-submit --master spark://h:7077 --conf 'a.secret=***' /m.py export"
        " --token env:PULSAR_TOKEN"
    )
    note = submit_note(arguments, conf)
    assert note == (
        "secrets are left out of the line: set PULSAR_TOKEN in the environment, or give file:PATH;"
        " put a.secret into a --properties-file"
    )
    assert submit_note(["export"], {}) is None
