"""The form in which options are declared."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from pulsar_py.cli.admin.words import Option, one_of


def test_an_option_is_what_its_text_says() -> None:
    assert Option.parse("-t/--time:time!") == Option(("-t", "--time"), "time", is_required=True)
    assert Option.parse("-g/--group=default") == Option(("-g", "--group"), default="default")
    assert Option.parse("--size:long=-1") == Option(("--size",), "long", default="-1")
    assert Option.parse("-f/--force:flag") == Option(("-f", "--force"), "flag")


def test_its_value_has_the_first_long_name() -> None:
    assert Option.parse("-md/--msg-dispatch-rate:int").key == "msg_dispatch_rate"
    assert Option.parse("--global/-g:flag").key == "global_"


@pytest.mark.parametrize(("on", "off"), [(True, True), (False, False)])
def test_one_of_two_switches_has_to_be_given(*, on: bool, off: bool) -> None:
    with pytest.raises(ValueError, match="--enable or --disable"):
        one_of(SimpleNamespace(enable=on, disable=off))
