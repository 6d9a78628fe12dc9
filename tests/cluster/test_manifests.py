"""The commands of `docker/cluster` run as processes, on a real ZooKeeper and real bookies.

Those of Kubernetes run without rights to write anywhere but where the manifest mounts something,
and what probes ask is asked.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import jwt
import pulsar
import pytest
import yaml

from pulsar_py.client.client import Client
from tests.cluster.apache_broker import ask
from tests.cluster.bookie_process import HOST, ROOT, BookKeeperCluster, own_disks

pytestmark = [pytest.mark.interop, pytest.mark.slow]

DOCKER = Path(__file__).parents[2] / "docker"
SERVICES: dict[str, Any] = yaml.safe_load((DOCKER / "cluster" / "compose.yaml").read_text())[
    "services"
]


KUBERNETES: Final[Mapping[tuple[str, str], Any]] = {
    (each["kind"], each["metadata"]["name"]): each
    for path in (DOCKER / "cluster" / "kubernetes").glob("*.yaml")
    for each in yaml.safe_load_all(path.read_text())
}
ZOOKEEPERS: Final = re.compile(
    r"zk:zookeeper(-\d\.zookeeper)?:2181(,zookeeper-\d\.zookeeper:2181)*"
)
READ_ONLY_ROOT: Final = """
mount --bind . /mnt
mount -o remount,bind,ro /mnt
mount -o remount,bind,ro /
cd /mnt
for each in $0; do mount -t tmpfs tmpfs "$each"; done
exec "$@"
"""
"""As in a pod with `readOnlyRootFilesystem`: only what is mounted can be written."""
KEYS_COUNT: Final = 30_000
"""More than a compaction may hold in a megabyte."""


class Containers:
    """What is started of ours, in a directory each that is laid out as the image."""

    def __init__(self, bookkeeper: BookKeeperCluster, directory: Path, chroot: str) -> None:
        self._zookeeper_url = f"{bookkeeper.zookeeper.url}/{chroot}"
        servers = bookkeeper.zookeeper.url.removeprefix("zk:").replace(",", ";")
        self._bookkeeper_uri = f"zk+hierarchical://{servers}{ROOT}"
        self._directory = directory
        self.processes: list[subprocess.Popen[str]] = []

    def _here(self, text: str) -> str:
        return ZOOKEEPERS.sub(self._zookeeper_url, text)

    def start(self, name: str, **settings: str) -> subprocess.Popen[str]:
        """Start a service of the compose file, with free ports and on this machine's servers."""
        service = SERVICES[name]
        return self._start(name, service["command"], service.get("environment", {}), settings)

    def start_pod(self, kind: str, name: str, **settings: str) -> subprocess.Popen[str]:
        """Start the first pod of a manifest, which may write to what is mounted and nothing else."""
        spec = KUBERNETES[kind, name]["spec"]["template"]["spec"]
        (container,) = spec["containers"]
        environment = {
            key: value
            for source in container.get("envFrom", ())
            for key, value in KUBERNETES["ConfigMap", source["configMapRef"]["name"]][
                "data"
            ].items()
        }
        given = {"metadata.name": f"{name}-0", "metadata.namespace": "pulsar"}
        for each in container.get("env", ()):
            value = each.get("value") or given[each["valueFrom"]["fieldRef"]["fieldPath"]]
            environment[each["name"]] = re.sub(
                r"\$\((\w+)\)", lambda found: environment[found[1]], value
            )
        assert container["securityContext"]["readOnlyRootFilesystem"]
        mounts = " ".join(each["mountPath"] for each in container.get("volumeMounts", ()))
        command = ["unshare", "-rm", "sh", "-ec", READ_ONLY_ROOT, mounts, *container["command"]]
        return self._start(name, command, environment, settings)

    def _start(
        self,
        name: str,
        command: Sequence[str],
        environment: Mapping[str, str],
        settings: Mapping[str, str],
    ) -> subprocess.Popen[str]:
        home = self._directory / name
        subprocess.run([DOCKER / "lay-out", home], check=True)
        kept = {key: value for key, value in os.environ.items() if not key.startswith("PULSAR_")}
        programs = Path(sys.executable).parent
        words = [self._here(word) for word in command]
        if name == "initialize":  # bookies are there already
            words += ["--existing-bk-metadata-service-uri", self._bookkeeper_uri]
        process = subprocess.Popen(
            words,
            cwd=home,
            env=kept
            | {"PATH": f"{programs}{os.pathsep}{kept['PATH']}"}
            | {key: self._here(value) for key, value in environment.items()}
            | dict(settings),
            stdout=subprocess.PIPE,
            text=True,
        )
        self.processes.append(process)
        return process

    def probe(self, web_url: str) -> None:
        """Ask the first broker of the manifest, on this port, what its pod's probes ask."""
        (container,) = KUBERNETES["StatefulSet", "broker"]["spec"]["template"]["spec"]["containers"]
        answered(web_url + container["readinessProbe"]["httpGet"]["path"])
        program, *arguments = container["livenessProbe"]["exec"]["command"]
        port = web_url.rpartition(":")[2]
        subprocess.run(
            [self._directory / "broker" / program, *arguments],
            env=os.environ | {"PULSAR_PREFIX_webServicePort": port},
            check=True,
        )

    def start_broker(self, name: str) -> tuple[subprocess.Popen[str], str, str]:
        """Start a broker of the compose file; returns it with its service URL and its web URL."""
        process = self.start(
            name,
            PULSAR_PREFIX_advertisedAddress="127.0.0.1",
            PULSAR_PREFIX_advertisedListeners="",
            PULSAR_PREFIX_internalListenerName="",
            **self.places(),
        )
        return process, *ready(process)

    def places(self) -> dict[str, str]:
        """Settings of a broker on this machine."""
        return {
            "PULSAR_PREFIX_bindAddress": "127.0.0.1",
            "PULSAR_PREFIX_brokerServicePort": "0",
            "PULSAR_PREFIX_webServicePort": "0",
            "PULSAR_PREFIX_bookkeeperMetadataServiceUri": self._bookkeeper_uri,
        }


def ready(process: subprocess.Popen[str]) -> tuple[str, str]:
    """The service URL and the web URL that a broker prints when it is ready."""
    assert process.stdout is not None
    words = process.stdout.readline().split()
    assert words[:2] == ["pulsar-py", "ready:"], words
    return words[2], words[3]


@pytest.fixture
def containers(bookkeeper: BookKeeperCluster, tmp_path: Path) -> Iterator[Containers]:
    made = Containers(bookkeeper, tmp_path, chroot=tmp_path.name)
    yield made
    for process in made.processes:
        process.kill()
        process.communicate()


def test_the_compose_files_brokers_serve_and_hand_over(containers: Containers) -> None:
    for _ in range(2):  # again at the next start
        assert containers.start("initialize").wait(60) == 0
    first, service_url, web_url = containers.start_broker("broker-1")
    _, other_url, other_web_url = containers.start_broker("broker-2")
    for url in (web_url, other_web_url):
        for path in ("ready", "version"):
            with urllib.request.urlopen(f"{url}/admin/v2/brokers/{path}", timeout=30) as answer:
                assert answer.status == 200
    client = pulsar.Client(
        f"{service_url},{other_url.removeprefix('pulsar://')}",
        logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error),
    )
    consumer = client.subscribe("orders", "sub")
    producer = client.create_producer("orders")
    for number in range(20):
        producer.send(b"%d" % number)
        if number == 9:
            first.terminate()
            begun = time.monotonic()
            assert first.wait(60) == 0
            assert time.monotonic() - begun < 60
    found = [consumer.receive(30_000).data() for _ in range(20)]
    assert found == [b"%d" % number for number in range(20)]
    client.close()


async def test_a_broker_of_kubernetes_writes_only_to_what_is_mounted(
    containers: Containers,
) -> None:
    if not own_disks():
        pytest.skip("needs user namespaces")
    assert containers.start_pod("Job", "initialize").wait(60) == 0
    process = containers.start_pod(
        "StatefulSet", "broker", PULSAR_PREFIX_topicCompactionMaxMemoryMB="1", **containers.places()
    )
    service_port, web_port = (int(url.rpartition(":")[2]) for url in ready(process))
    web_url = f"http://{HOST}:{web_port}"
    await asyncio.to_thread(containers.probe, web_url)
    found = await asyncio.to_thread(
        answered, f"{web_url}/lookup/v2/topic/persistent/public/default/many"
    )
    assert json.loads(found)["brokerUrl"] == f"pulsar://broker-0.broker.pulsar.svc:{service_port}"
    await publish_many(service_port)
    await asyncio.to_thread(compact_many, web_url)
    process.terminate()
    assert await asyncio.to_thread(process.wait, 90) == 0


def test_a_secured_broker_of_kubernetes_answers_its_probes(containers: Containers) -> None:
    """They have no token; a broker whose session is in doubt is out of service, and lives."""
    if not own_disks():
        pytest.skip("needs user namespaces")
    assert containers.start_pod("Job", "initialize").wait(60) == 0
    key = "data:;base64," + base64.b64encode(bytes(32)).decode()
    process = containers.start_pod(
        "StatefulSet", "broker",
        PULSAR_PREFIX_authenticationEnabled="true",
        PULSAR_PREFIX_authenticationProviders="token",
        PULSAR_PREFIX_authorizationEnabled="true",
        PULSAR_PREFIX_superUserRoles="admin",
        PULSAR_PREFIX_tokenSecretKey=key,
        PULSAR_PREFIX_brokerClientAuthenticationPlugin="token",
        PULSAR_PREFIX_brokerClientAuthenticationParameters="token:"
        + jwt.encode({"sub": "admin"}, bytes(32), "HS256"),
        **containers.places(),
    )  # fmt: skip
    _, web_url = ready(process)
    web_url = f"http://{HOST}:{web_url.rpartition(':')[2]}"
    with pytest.raises(urllib.error.HTTPError, match="401"):
        answered(f"{web_url}/admin/v2/brokers/ready")
    containers.probe(web_url)
    process.terminate()
    assert process.wait(90) == 0


async def publish_many(port: int) -> None:
    """Publish more keys than a compaction may hold; the broker's name means nothing here."""

    async def connect(cnx: Any, _: object) -> None:
        await asyncio.get_running_loop().create_connection(lambda: cnx, HOST, port)

    async with Client(f"pulsar://{HOST}:{port}") as client:
        client.context.pool.connector = connect
        producer = await client.create_producer("many", max_pending_messages=KEYS_COUNT)
        sent = [
            asyncio.ensure_future(producer.send(b"", partition_key=f"key-{number}"))
            for number in range(KEYS_COUNT)
        ]
        await asyncio.gather(*sent)


def compact_many(web_url: str) -> None:
    path = "persistent/public/default/many/compaction"
    ask(web_url, "PUT", path)
    deadline = time.monotonic() + 60
    while (told := ask(web_url, "GET", path))["status"] == "RUNNING":
        assert time.monotonic() < deadline
        time.sleep(0.2)
    assert told["status"] == "SUCCESS", told


def answered(url: str) -> bytes:
    """What is answered with 200."""
    with urllib.request.urlopen(url, timeout=30) as answer:
        assert answer.status == 200
        return bytes(answer.read())


def test_bookies_answer_their_probes(bookkeeper: BookKeeperCluster) -> None:
    (container,) = KUBERNETES["StatefulSet", "bookie"]["spec"]["template"]["spec"]["containers"]
    for probe in ("readinessProbe", "livenessProbe"):
        assert container[probe]["httpGet"]["port"] == "http"
        answered(
            f"http://{HOST}:{bookkeeper.bookies[0].http_port}{container[probe]['httpGet']['path']}"
        )
