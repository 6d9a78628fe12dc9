"""Makes settings of the options that commands of `pulsar-py pipeline` share (edge).

It reads the environment and files for secrets, and the clock for times relative to now.

Third-party packages it may import: pyspark.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pulsar_py.admin_client import AdminSettings
from pulsar_py.cli.pipeline import command as commands
from pulsar_py.common.errors import ConfigurationError
from pulsar_py.common.loops.clock import SystemClock
from pulsar_py.pipeline.settings import (
    Cluster,
    Guarantee,
    PartitionColumn,
    TopicRange,
    TopicTarget,
)
from pulsar_py.pipeline.settings.secrets import (
    ENVIRONMENT,
    FILE,
    Redactor,
    is_secret_name,
    resolved,
    users_in,
)
from pulsar_py.pipeline.settings.texts import (
    parse_assignments,
    parse_duration,
    parse_size,
    parse_time,
)
from pulsar_py.pipeline.tables import Target
from pulsar_py.pipeline.topics import Streaming

if TYPE_CHECKING:
    from pulsar_py.pipeline.lake import LakeSettings

Options = Mapping[str, Any]  # Any: click's values

DEFAULT_ADMIN_URL = "http://localhost:8080"


def cluster_of(options: Options) -> Cluster:
    """The cluster of the topics that are read.

    Raises:
        ConfigurationError: An option is not NAME=VALUE, or refers to a variable that is not set.
    """
    further = {
        each: resolved(value, f"--option {each}", os.environ) if is_secret_name(each) else value
        for each, value in parse_assignments(options["connector_options"], "--option").items()
    }
    admin_url = options["admin_url"]
    if admin_url is None and options["service_url"] == commands.DEFAULT_SERVICE_URL:
        admin_url = DEFAULT_ADMIN_URL
    return Cluster(
        service_url=options["service_url"],
        admin_url=admin_url,
        options=further | token_options(options["token"], "--token"),
    )


def token_options(token: str | None, option: str = "--token") -> dict[str, str]:
    """The connector's options for a token, which is given by value, `env:NAME` or `file:PATH`."""
    if token is None:
        return {}
    value = resolved(token, option, os.environ)
    is_file = value.startswith(FILE)
    params = Path(value.removeprefix(FILE)).absolute().as_uri() if is_file else f"token:{value}"
    return {
        "pulsar.client.authPluginClassName": "token",
        "pulsar.client.authParams": params,
    }


def token_value(token: str | None) -> str | None:
    """The token itself; None without one.

    Raises:
        ConfigurationError: Its file can't be read, or its variable is not set.
    """
    value = None if token is None else resolved(token, "--token", os.environ)
    if value is None or not value.startswith(FILE):
        return value
    try:
        return Path(value.removeprefix(FILE)).read_text().strip()
    except OSError as error:
        raise ConfigurationError(f"--token: {value}: {error.strerror}") from error


def without_variables(options: Options) -> Options:
    """The options without references to environment variables.

    --print-submit needs no secrets, and the variables may be set on another machine alone.
    """
    tokens = {
        name: None
        for name in ("token", "to_token")
        if (options.get(name) or "").startswith(ENVIRONMENT)
    }
    kept = tuple(
        each
        for each in options["connector_options"]
        if not each.partition("=")[2].startswith(ENVIRONMENT)
    )
    return {**options, **tokens, "connector_options": kept}


def redactor_of(options: Options) -> Redactor:
    """A redactor of the secrets that the command line has or refers to."""
    given = [options.get("token"), options.get("to_token")]
    for text in (*options.get("connector_options", ()), *options.get("conf", ())):
        name, _, value = text.partition("=")
        given += [value] if is_secret_name(name) else []
    for name in ("service_url", "admin_url", "to_service_url", "to_admin_url"):
        given += users_in(options.get(name) or "")
    in_variables = [
        os.environ.get(each.removeprefix(ENVIRONMENT))
        for each in given
        if each is not None and each.startswith(ENVIRONMENT)
    ]
    return Redactor([*given, *in_variables])


def admin_of(options: Options, cluster: Cluster) -> AdminSettings:
    """The settings of the admin API's client.

    Raises:
        ConfigurationError: There is no admin URL, or the token can't be read.
    """
    if cluster.admin_url is None:
        raise ConfigurationError(
            "--admin-url is missing: give it, as it has no default for another --service-url"
        )
    given = {name.lower(): value for name, value in cluster.options.items()}
    return AdminSettings(
        url=cluster.admin_url,
        token=token_value(options["token"]),
        tls_trust_certs_file=given.get("pulsar.client.tlstrustcertsfilepath"),
        allows_insecure_tls=given.get("pulsar.client.tlsallowinsecureconnection") == "true",
    )


def target_of(options: Options, topic: str, *, name: str | None = None) -> TopicTarget:
    """The topic that is written, of the target's cluster if there is one.

    Args:
        options: The command's options.
        topic: The topic's name.
        name: The idempotency key.
    """
    cluster = cluster_of(options)
    if options["to_service_url"] is not None:
        token = options["to_token"] or options["token"]
        cluster = Cluster(
            service_url=options["to_service_url"],
            admin_url=options["to_admin_url"],
            options=dict(cluster.options) | token_options(token, "--to-token"),
        )
    return TopicTarget(
        cluster=cluster,
        topic=topic,
        guarantee=Guarantee(options["guarantee"]),
        idempotency_key=name,
        has_binary_keys=options["binary_keys"],
    )


def range_of(options: Options, topic: str) -> TopicRange:
    """The range of topics that is read.

    Raises:
        ConfigurationError: Limits of micro-batches are given, and no admin URL.
    """
    now = SystemClock().wall_time_millis()
    since, until = options.get("since"), options.get("until")
    max_bytes = options.get("max_bytes")
    cluster = cluster_of(options)
    has_admin_url = cluster.admin_url is not None or "admin.url" in map(str.lower, cluster.options)
    for name in ("max_bytes", "max_entries"):
        if options.get(name) is not None and not has_admin_url:
            raise ConfigurationError(
                f"--{name.replace('_', '-')} needs --admin-url, as the REST API alone knows the"
                " sizes of ledgers; --admin-url has no default for another --service-url"
            )
    return TopicRange(
        cluster=cluster,
        topic=topic,
        starting_millis=None if since is None else parse_time(since, now),
        ending_millis=None if until is None else parse_time(until, now) - 1,
        is_raw=options.get("is_raw", False),
        max_entries_per_batch=options.get("max_entries"),
        max_bytes_per_batch=None if max_bytes is None else parse_size(max_bytes),
    )


def streaming_of(options: Options, checkpoint: str) -> Streaming:
    """The settings of a stream.

    Args:
        options: The command's options.
        checkpoint: The checkpoint if the options have none.
    """
    return Streaming(
        checkpoint=options["checkpoint"] or checkpoint,
        is_continuous=not options["is_once"],
        interval_seconds=parse_duration(options["interval"]),
    )


def streaming_or_batch(options: Options) -> Streaming | None:
    """The settings of a stream; None without a checkpoint, which makes a batch.

    Raises:
        ConfigurationError: The options want a continuous stream without a checkpoint.
    """
    checkpoint = options["checkpoint"]
    if checkpoint is not None:
        return streaming_of(options, checkpoint)
    if not options["is_once"]:
        raise ConfigurationError(
            "--continuous needs --checkpoint, the directory of the stream's progress"
        )
    return None


def lake_of(options: Options, target: Target) -> LakeSettings:
    """The table that is written, and the layout of its files.

    Raises:
        ConfigurationError: The file size or a partition column is invalid.
    """
    from pulsar_py.pipeline.lake import LakeSettings  # loads pyarrow

    file_bytes = parse_size(options["file_size"])
    if not file_bytes:
        raise ConfigurationError(
            "--file-size: 0 would make a file for each row; give a size such as 128MiB"
        )
    return LakeSettings(
        target=target,
        partition_by=tuple(PartitionColumn.parse(each) for each in options["partition_by"]),
        file_bytes=file_bytes,
        is_compacted=not options["no_compaction"],
    )


def table_or_topic(options: Options) -> dict[str, Any]:  # Any: of two classes, by field name
    """The setting `lake` or `topic`, by the option --to of commands that write either."""
    text = options["target"]
    if text.startswith("topic:"):
        topic = text.removeprefix("topic:")
        return {"topic": target_of(options, topic, name=options.get("name"))}
    return {"lake": lake_of(options, Target.parse(text))}
