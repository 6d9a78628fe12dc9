"""The settings for users' classes."""

from __future__ import annotations

from pulsar_py.server.broker_settings import dispatch_settings
from pulsar_py.server.config import BrokerConfig
from pulsar_py.server.settings.hooks import HOOKS, HookSettings


def test_filters_are_a_list_of_names() -> None:
    config = BrokerConfig.load(properties_text="entryFilterNames = a.B, c.D")
    assert config.entryFilterNames == ("a.B", "c.D")
    settings = dispatch_settings(config)
    assert settings.entry_filter_names == ("a.B", "c.D")
    assert not settings.allows_filter_override
    assert settings.rescheduled_delay_millis == 1000


def test_they_are_in_one_category() -> None:
    assert {each.category for each in HookSettings.declared().values()} == {HOOKS}
