"""The settings of load balancing."""

from __future__ import annotations

import pytest

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.server.cluster_load import balancing_settings, placement_rules, report_settings
from pulsar_py.server.config import BrokerConfig
from pulsar_py.server.load.balancer import BalancingSettings
from pulsar_py.server.load.placement import PlacementRules
from pulsar_py.server.load_reporter import ReportingSettings
from pulsar_py.server.settings.load import LOAD, LoadSettings, SheddingStrategy


def test_defaults_are_apaches_and_those_of_the_parts() -> None:
    config = BrokerConfig()
    assert balancing_settings(config) == BalancingSettings()
    assert placement_rules(config) == PlacementRules()
    assert report_settings(config) == ReportingSettings()
    assert {each.category for each in LoadSettings.declared().values()} == {LOAD}


def test_a_strategy_goes_by_its_class() -> None:
    name = "org.apache.pulsar.broker.loadbalance.impl.OverloadShedder"
    config = BrokerConfig.from_texts({"loadBalancerLoadSheddingStrategy": name})
    assert config.loadBalancerLoadSheddingStrategy is SheddingStrategy.OVERLOAD
    assert balancing_settings(config).shedding.strategy == "OverloadShedder"
    with pytest.raises(ConfigurationError, match="UniformLoadShedder"):
        BrokerConfig.from_texts({"loadBalancerLoadSheddingStrategy": "x.AvgShedder"})


def test_units_are_those_of_the_names() -> None:
    config = BrokerConfig.from_texts(
        {
            "loadBalancerSheddingIntervalMinutes": "2",
            "loadBalancerOverrideBrokerNicSpeedGbps": "2.5",
            "loadBalancerBrokerOverloadedThresholdPercentage": "70",
        }
    )
    assert balancing_settings(config).shedding_seconds == 120.0
    assert report_settings(config).network_kilobits == 2_500_000.0
    assert placement_rules(config).overloaded_share == 0.7
