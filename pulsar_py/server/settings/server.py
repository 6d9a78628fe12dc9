"""Settings of listeners, connections, lookups, HTTP and metrics."""

# ruff: noqa: N815 - settings keep the names of broker.conf
from __future__ import annotations

from typing import Final

from pulsar_py.server.settings.declaring import Settings, setting

SERVER: Final = "Server"
CONNECTIONS: Final = "Connections"
LIMITS: Final = "Limits"
METRICS: Final = "Metrics"

MAX_PORT: Final = 65_535


class ServerSettings(Settings):
    """The settings of broker.conf for addresses, connections, lookups and HTTP."""

    clusterName: str = setting(
        default="standalone", category=SERVER, doc="Name of the cluster this broker belongs to."
    )
    bindAddress: str = setting(
        default="",
        category=SERVER,
        doc="Address that the broker listens on; empty means that of this machine alone, "
        "`127.0.0.1`, for `pulsar-py standalone` without authentication, and else all, `0.0.0.0`.",
    )
    brokerServicePort: int | None = setting(
        default=6650,
        minimum=0,
        maximum=MAX_PORT,
        category=SERVER,
        doc="Port of the binary protocol in clear text; empty opens none, 0 takes a free one.",
    )
    webServicePort: int | None = setting(
        default=8080,
        minimum=0,
        maximum=MAX_PORT,
        category=SERVER,
        doc="Port of administration and metrics over HTTP; empty opens none, 0 takes a free one.",
    )
    advertisedAddress: str = setting(
        default="",
        category=SERVER,
        doc="Host name that lookups return to clients; empty means `localhost`, or the bound "
        "address.",
    )
    advertisedListeners: str = setting(
        default="",
        category=SERVER,
        doc="Further addresses of this broker, as `name:scheme://host:port`, separated by commas. "
        "A client names the one it wants in its lookup.",
    )
    internalListenerName: str = setting(
        default="",
        category=SERVER,
        doc="Advertised listener for clients that name none; empty means the first.",
    )
    enablePersistentTopics: bool = setting(
        default=True, category=SERVER, doc="Whether persistent topics are served."
    )
    enableNonPersistentTopics: bool = setting(
        default=True, category=SERVER, doc="Whether non-persistent topics are served."
    )
    brokerShutdownTimeoutMs: int = setting(
        default=60_000,
        minimum=0,
        dynamic=True,
        category=SERVER,
        doc="Milliseconds that a stop may take; topics that are not closed by then are left as "
        "they are.",
    )
    keepAliveIntervalSeconds: int = setting(
        default=30,
        minimum=1,
        category=CONNECTIONS,
        doc="Seconds of silence after which a PING is sent to a client; after as many more "
        "without an answer its connection is closed.",
    )
    connectionLivenessCheckTimeoutMillis: int = setting(
        default=5000,
        minimum=1,
        category=CONNECTIONS,
        doc="Milliseconds in which a producer's or consumer's connection has to answer a PING "
        "when another one wants its name, its place or its hash ranges.",
    )
    maxMessageSize: int = setting(
        default=5 * 1024 * 1024,
        minimum=1,
        maximum=2_147_473_407,
        category=CONNECTIONS,
        doc="Bytes of the largest message; a frame may be 10 KiB longer.",
    )
    brokerMaxConnections: int = setting(
        default=0, minimum=0, category=CONNECTIONS, doc="Most connections at a time; 0 is no limit."
    )
    brokerMaxConnectionsPerIp: int = setting(
        default=0,
        minimum=0,
        category=CONNECTIONS,
        doc="Most connections from one address at a time; 0 is no limit.",
    )
    maxPendingPublishRequestsPerConnection: int = setting(
        default=1000,
        minimum=1,
        category=CONNECTIONS,
        doc="Messages without a receipt at which reading from a connection pauses.",
    )
    maxMessagePublishBufferSizeInMB: int = setting(
        default=64,
        minimum=-1,
        category=CONNECTIONS,
        doc="Megabytes of messages without a receipt, in the whole broker, at which reading from "
        "all publishing connections pauses; -1 is no limit.",
    )
    maxConcurrentNonPersistentMessagePerConnection: int = setting(
        default=1000,
        minimum=0,
        category=CONNECTIONS,
        doc="Unanswered messages to non-persistent topics on one connection beyond which further "
        "ones are dropped.",
    )
    maxConcurrentLookupRequest: int = setting(
        default=50_000,
        minimum=1,
        dynamic=True,
        category=LIMITS,
        doc="Lookups under way in the whole broker beyond which further ones are refused.",
    )
    maxTopicListInFlightHeapMemSizeMB: int = setting(
        default=100,
        minimum=1,
        category=LIMITS,
        doc="Megabytes of topic lists on their way to clients, over REST, too, all connections "
        "together; further ones wait.",
    )
    maxTopicListInFlightHeapMemSizePermitsAcquireQueueSize: int = setting(
        default=10_000,
        minimum=0,
        category=LIMITS,
        doc="Topic lists that wait for room at most; further ones are refused.",
    )
    maxTopicListInFlightHeapMemSizePermitsAcquireTimeoutMillis: int = setting(
        default=25_000,
        minimum=1,
        category=LIMITS,
        doc="Milliseconds that a topic list waits for room before it is refused.",
    )
    maxConcurrentTopicLoadRequest: int = setting(
        default=5000,
        minimum=1,
        dynamic=True,
        category=LIMITS,
        doc="Topics that are loaded at the same time; further ones wait.",
    )
    topicLoadTimeoutSeconds: int = setting(
        default=60,
        minimum=1,
        category=LIMITS,
        doc="Seconds after which loading a topic has failed.",
    )
    maxConsumerMetadataSize: int = setting(
        default=1024,
        minimum=0,
        category=LIMITS,
        doc="Bytes of the largest metadata of a consumer, keys and values together.",
    )
    authenticationRefreshCheckSeconds: int = setting(
        default=60,
        minimum=1,
        category=CONNECTIONS,
        doc="Seconds that a client has to answer when its credentials have expired and it is "
        "asked for others; it is not served meanwhile. Whether they have is looked at twice a "
        "second.",
    )
    enableBrokerTopicListWatcher: bool = setting(
        default=True, category=SERVER, doc="Whether clients may watch a namespace's list of topics."
    )
    enableBrokerSideSubscriptionPatternEvaluation: bool = setting(
        default=True,
        category=SERVER,
        doc="Whether the broker filters lists of topics by the client's pattern.",
    )
    subscriptionPatternMaxLength: int = setting(
        default=50,
        minimum=0,
        category=SERVER,
        doc="Characters of the longest pattern that the broker evaluates.",
    )
    maxHttpServerConnections: int = setting(
        default=2048, minimum=1, category="HTTP", doc="Most HTTP connections at a time."
    )
    maxHttpServerConnectionsPerIp: int = setting(
        default=0,
        minimum=0,
        category="HTTP",
        doc="Most HTTP connections, WebSockets among them, from one address at a time; 0 is no "
        "limit. Pulsar has no such setting.",
    )
    httpServerIdleTimeout: int = setting(
        default=30_000,
        minimum=1,
        category="HTTP",
        doc="Milliseconds after which an idle HTTP connection is closed.",
    )
    httpMaxRequestHeaderSize: int = setting(
        default=8192, minimum=256, category="HTTP", doc="Bytes of the longest HTTP request head."
    )
    httpMaxRequestSize: int = setting(
        default=-1,
        minimum=-1,
        category="HTTP",
        doc="Bytes of the longest HTTP request body; -1 is 16 MiB.",
    )
    webServiceRequestLogEnabled: bool = setting(
        default=False,
        category="HTTP",
        doc="Whether each HTTP request has a line in the log, of the logger `pulsar_py.requests`: "
        "address, method, path without query, status, bytes and milliseconds. Pulsar has no such "
        "setting.",
    )
    consoleEnabled: bool = setting(
        default=True,
        category="HTTP",
        doc="Whether the console's pages are served below `/console`. What they show and do needs "
        "the rights that the REST API asks for. Pulsar has no such setting.",
    )
    webServiceAllowedOrigins: frozenset[str] = setting(
        default=frozenset(),
        category="HTTP",
        doc="Origins such as `https://tools.example` whose pages may call the broker from a "
        "browser, and get the headers of CORS; requests of other sites' pages are refused. Pulsar "
        "has no such setting.",
    )
    webServiceAllowedHosts: frozenset[str] = setting(
        default=frozenset(),
        category="HTTP",
        doc="Names such as `broker.example` by which HTTP requests may call a broker without "
        "authentication, besides addresses, names of loopback and advertised ones. On loopback "
        "alone other names are refused, else other names from browsers. Pulsar has no such "
        "setting.",
    )
    webSocketServiceEnabled: bool = setting(
        default=True,
        category="HTTP",
        doc="Whether `/ws` is served. Apache Pulsar's default is false, and true in standalone.",
    )
    webSocketSessionIdleTimeoutMillis: int = setting(
        default=300_000,
        minimum=0,
        category="HTTP",
        doc="Milliseconds after which a WebSocket is closed if nothing comes or goes; 0: never.",
    )
    webSocketMaxTextFrameSize: int = setting(
        default=1024 * 1024,
        minimum=1,
        category="HTTP",
        doc="Bytes of the longest message of a WebSocket client, all fragments together.",
    )
    webSocketPingDurationSeconds: int = setting(
        default=-1,
        minimum=-1,
        category="HTTP",
        doc="Seconds between two pings to each WebSocket client; 0 or less sends none.",
    )
    statusFilePath: str = setting(
        default="",
        category="HTTP",
        doc="The file that has to be there for `/status.html` to answer 200, which load balancers "
        "ask; empty: it never does.",
    )
    transactionCoordinatorEnabled: bool = setting(
        default=False,
        category="Transactions",
        doc="Whether transactions are served. This version has none: true is refused.",
    )


class MetricsSettings(Settings):
    """Which lines `/metrics` has, and the time that rates are measured over."""

    exposeTopicLevelMetricsInPrometheus: bool = setting(
        default=True,
        category=METRICS,
        doc="Whether `/metrics` has lines of each topic and subscription; else it has their sums "
        "by namespace.",
    )
    exposeConsumerLevelMetricsInPrometheus: bool = setting(
        default=False,
        category=METRICS,
        doc="Whether `/metrics` has lines of each consumer, too, where it has those of topics.",
    )
    exposeProducerLevelMetricsInPrometheus: bool = setting(
        default=False,
        category=METRICS,
        doc="Whether `/metrics` has lines of each producer, too, where it has those of topics.",
    )
    splitTopicAndPartitionLabelInPrometheus: bool = setting(
        default=False,
        category=METRICS,
        doc="Whether partitions have the name of their topic as label `topic`, and a label "
        "`partition` with their index, which is -1 for topics without partitions.",
    )
    statsUpdateFrequencyInSecs: int = setting(
        default=60,
        minimum=1,
        category=METRICS,
        doc="Seconds over which the rates in statistics and metrics are measured.",
    )
