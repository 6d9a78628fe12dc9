"""`docker/cluster`: what the compose file and the manifests of Kubernetes say fits the programs."""

from __future__ import annotations

import base64
import copy
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import compose_spec
import kubernetes_validate
import pytest
import yaml

from pulsar_py.server.config import BrokerConfig
from pulsar_py.testing.broker_thread import BrokerThread

CLUSTER = Path(__file__).parents[2] / "docker" / "cluster"
MANIFESTS = sorted((CLUSTER / "kubernetes").glob("*.yaml"))
COMPOSE = yaml.safe_load((CLUSTER / "compose.yaml").read_text())
OBJECTS = [each for path in MANIFESTS for each in yaml.safe_load_all(path.read_text())]
OURS = "pulsar-py:"
"""The image of docker/Dockerfile, as the manifests name it."""


def named(kind: str) -> dict[str, Any]:
    return {each["metadata"]["name"]: each for each in OBJECTS if each["kind"] == kind}


def pods() -> Iterator[tuple[str, dict[str, Any]]]:
    for kind in ("StatefulSet", "Job"):
        for name, each in named(kind).items():
            yield name, each["spec"]["template"]


def settings_of_ours() -> dict[str, Mapping[str, str]]:
    """The environment of each broker, by where it stands."""
    found = {
        f"compose {name}": service["environment"]
        for name, service in COMPOSE["services"].items()
        if "build" in service and "environment" in service
    }
    return found | {"kubernetes": named("ConfigMap")["broker"]["data"]}


@pytest.mark.parametrize("place", settings_of_ours())
def test_settings_are_those_of_a_broker(place: str) -> None:
    config = BrokerConfig.load(environment=settings_of_ours()[place], is_of_cluster=True)
    assert config.clusterName == "one"
    quorums = (
        config.managedLedgerDefaultEnsembleSize,
        config.managedLedgerDefaultWriteQuorum,
        config.managedLedgerDefaultAckQuorum,
    )
    assert quorums == (3, 3, 2)


def test_commands_of_our_image_are_there() -> None:
    commands = [each["command"] for each in COMPOSE["services"].values() if "build" in each]
    commands += [
        container["command"]
        for _, pod in pods()
        for container in pod["spec"]["containers"]
        if container["image"].startswith(OURS)
    ]
    assert len(commands) == 5
    for command in commands:
        words = command[-1].rpartition("exec ")[2].split() if command[0] == "sh" else command
        program, name, *options = words
        assert program == "bin/pulsar"
        told = subprocess.run(
            [Path(sys.executable).with_name("pulsar-py"), name, "--help"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        assert all(each in told for each in options if each.startswith("--")), words


def test_parts_of_the_manifests_find_each_other() -> None:
    services, maps = named("Service"), named("ConfigMap")
    labels = {name: pod["metadata"]["labels"] for name, pod in pods() if "metadata" in pod}
    assert set(labels) == {"zookeeper", "bookie", "broker"}
    for name, each in named("StatefulSet").items():
        assert services[each["spec"]["serviceName"]]["spec"]["selector"] == labels[name]
        assert each["spec"]["selector"]["matchLabels"] == labels[name]
        budget = named("PodDisruptionBudget")[name]["spec"]
        assert budget["maxUnavailable"] == 1
        assert budget["selector"] == {"matchLabels": labels[name]}
    for _, pod in pods():
        for container in (*pod["spec"]["containers"], *pod["spec"].get("initContainers", ())):
            for source in container.get("envFrom", ()):
                assert source["configMapRef"]["name"] in maps
            ports = {port["name"]: port["containerPort"] for port in container.get("ports", ())}
            for probe in ("readinessProbe", "livenessProbe"):
                if container in pod["spec"]["containers"]:
                    assert (probe in container) == (pod["spec"].get("restartPolicy") is None)
                way = container.get(probe, {})
                port = (way.get("httpGet") or way.get("tcpSocket") or {}).get("port")
                assert port is None or port in ports
    zookeepers = {f"zookeeper-{number}.zookeeper:2181" for number in range(3)}
    for settings, name in (
        (maps["broker"]["data"], "PULSAR_PREFIX_metadataStoreUrl"),
        (maps["bookie"]["data"], "zkServers"),
    ):
        assert set(settings[name].removeprefix("zk:").split(",")) == zookeepers


def test_a_broker_drains_before_it_is_killed() -> None:
    spec = named("StatefulSet")["broker"]["spec"]["template"]["spec"]
    assert spec["terminationGracePeriodSeconds"] >= 60
    (broker,) = spec["containers"]
    assert "lifecycle" not in broker, "SIGTERM itself hands the topics over"
    for name in ("broker-1", "broker-2"):
        assert COMPOSE["services"][name]["stop_grace_period"] == "90s"


def secured() -> dict[str, object]:
    """Settings with which every caller has to prove who he is."""
    key = "data:;base64," + base64.b64encode(bytes(range(32))).decode()
    return {
        "authenticationEnabled": True,
        "authenticationProviders": ("token",),
        "authorizationEnabled": True,
        "superUserRoles": frozenset({"admin"}),
        "tokenSecretKey": key,
    }


def test_probes_need_no_rights(tmp_path: Path) -> None:
    """A cluster that is secured later stays ready, and is not restarted for ever."""
    (broker,) = named("StatefulSet")["broker"]["spec"]["template"]["spec"]["containers"]
    home = tmp_path / "pulsar"
    subprocess.run([CLUSTER.parent / "lay-out", home], check=True)
    program = home / broker["livenessProbe"]["exec"]["command"][0]
    file = named("ConfigMap")["broker"]["data"]["PULSAR_PREFIX_statusFilePath"]
    path = broker["readinessProbe"]["httpGet"]["path"]
    config = {**secured(), "statusFilePath": str(home / file)}
    with BrokerThread(config=config) as running:
        with urllib.request.urlopen(running.web_service_url + path, timeout=30) as answer:
            assert answer.status == 200
        port = str(urlsplit(running.web_service_url).port)
        assert subprocess.run([program], env=probed(port), check=False).returncode == 0
    assert subprocess.run([program], env=probed(port), check=False).returncode == 1, (
        "it has stopped"
    )


def probed(port: str) -> dict[str, str]:
    """The environment of a container whose broker has this port for HTTP."""
    return {**os.environ, "PULSAR_PREFIX_webServicePort": port}


def test_a_root_that_can_not_be_written_has_a_place_for_scratch_files() -> None:
    """Compaction of many keys, and stores of certificates, make temporary files."""
    spec = named("StatefulSet")["broker"]["spec"]["template"]["spec"]
    (broker,) = spec["containers"]
    assert broker["securityContext"]["readOnlyRootFilesystem"]
    (mount,) = broker["volumeMounts"]
    assert mount["mountPath"] == "/tmp"
    assert [each["name"] for each in spec["volumes"] if "emptyDir" in each] == [mount["name"]]


def test_volumes_are_where_the_image_of_apache_has_a_directory() -> None:
    """A new volume gets that one's owner; below `/pulsar/data` it would belong to root."""
    mounts = [
        each for service in COMPOSE["services"].values() for each in service.get("volumes", ())
    ]
    assert len(mounts) == 4
    assert {each.partition(":")[2] for each in mounts} == {"/pulsar/data"}


def test_manifests_keep_to_the_schemas_of_kubernetes() -> None:
    for each in OBJECTS:
        kubernetes_validate.validate(each, "1.31", strict=True)
    broken = copy.deepcopy(named("StatefulSet")["broker"])
    broken["spec"]["template"]["spec"]["containers"][0]["readinessProb"] = {}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(broken, "1.31", strict=True)


def test_the_compose_file_keeps_to_the_specification() -> None:
    merged = {name: part for name, part in COMPOSE.items() if not name.startswith("x-")}
    found = compose_spec.PyCompose.from_yaml(yaml.safe_dump(merged))
    assert set(found.service_names()) == set(COMPOSE["services"])
    merged["services"]["broker-1"]["stop_grace_period"] = "soon"
    with pytest.raises(ValueError, match=r"stop_grace_period|soon"):
        compose_spec.PyCompose.from_yaml(yaml.safe_dump(merged))
