"""Settings that Apache Pulsar or its bookie has and this broker does not need.

They are accepted so that a `broker.conf` or `standalone.conf` of Pulsar's loads unchanged, listed
in the generated files of `conf`, and logged when their value is not the default. Settings that ask
for protection which this version lacks are refused instead. So are, by a broker of a cluster, those
of Pulsar's clients of ZooKeeper and BookKeeper: a user who changed one relies on its effect.

The table is one text, parsed on first use: a comment says why the names below it have no effect,
with `#!` where a broker of a cluster refuses any value but the default or an empty one, and `#x`
where every broker does. `*` marks those that Pulsar can change while it runs.

Source: ServiceConfiguration of Apache Pulsar 4.2.4, ServerConfiguration and DbLedgerStorage of its
BookKeeper (names and defaults, by reflection).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Final

from msgspec import Struct


class IgnoredSetting(Struct, frozen=True):
    """One of Pulsar's settings without effect here."""

    name: str
    default: str
    reason: str
    is_dynamic: bool
    is_of_cluster: bool
    """A broker of a cluster refuses any other value; alone it is one without effect."""
    is_protection: bool
    """Whoever sets another value relies on a protection that is not there: it is refused."""

    def is_default(self, text: str) -> bool:
        """Whether this value changes nothing."""
        return text.strip() in {"", self.default} or text.strip().lower() == self.default

    def is_refused(self, text: str, *, is_of_cluster: bool = False) -> bool:
        """Whether this value asks for protection, or of a cluster's client, what is not there."""
        is_relied_on = self.is_protection or (is_of_cluster and self.is_of_cluster)
        return is_relied_on and not self.is_default(text)


@cache
def ignored_settings() -> Mapping[str, IgnoredSetting]:
    """All settings without effect by name, those with the same reason together."""
    settings = {}
    reason = ""
    is_of_cluster = is_protection = False
    for line in _TABLE.splitlines():
        if line.startswith("#"):
            is_of_cluster, is_protection = line.startswith("#!"), line.startswith("#x")
            reason = line.lstrip("#!x").strip()
        elif line:
            name, _, default = line.partition("=")
            is_dynamic = name.startswith("*")
            name = name.removeprefix("*")
            settings[name] = IgnoredSetting(
                name, default, reason, is_dynamic, is_of_cluster, is_protection
            )
    return settings


_TABLE: Final = """\
# The broker is one event loop: there are no such threads and queues.
*dispatcherDispatchMessagesInSubscriptionThread=true
enableBusyWait=false
httpServerAcceptQueueSize=8192
httpServerThreadPoolQueueSize=8192
managedLedgerNumSchedulerThreads=2
managedLedgerOffloadMaxThreads=2
managedLedgerOffloadReadThreads=2
maxPendingAddRequestsPerThread=
maxPendingReadRequestsPerThread=
numAcceptorThreads=1
numAddWorkerThreads=1
numCacheExecutorThreadPoolSize=10
numExecutorThreadPoolSize=2
numHighPriorityWorkerThreads=8
numHttpServerThreads=8
numIOThreads=4
numJournalCallbackThreads=1
numLongPollWorkerThreads=0
numOfMemtableFlushThreads=8
numOrderedExecutorThreads=8
numReadWorkerThreads=8
numTransactionReplayThreadPoolSize=2
numWorkerThreadsForNonPersistentTopic=-1
readWorkerThreadsThrottlingEnabled=true
serverNumAcceptorThreads=1
serverNumIOThreads=4
topicOrderedExecutorThreadNum=2
useSeparateThreadPoolForProtocolHandlers=true
webSocketNumIoThreads=2
webSocketNumServiceThreads=20

# Reads are always cut at what the permits allow, by the average number of messages in an entry.
*preciseDispatcherFlowControl=false

# A delayed message never comes early here, and less than `delayedDeliveryTickTimeMillis` late.
isDelayedDeliveryDeliverAtTimeStrict=false

# Names Java classes or their directories, which can't be loaded here.
additionalServletDirectory=./brokerAdditionalServlet
allowShadedLedgerManagerFactoryClass=
brokerInterceptorsDirectory=./interceptors
dispatchRateLimiterFactoryClassName=\
org.apache.pulsar.broker.service.persistent.DispatchRateLimiterFactoryAsyncTokenBucket
journalDirectory=
jvmGCMetricsLoggerClassName=
ledgerManagerFactoryClass=
loadManagerServiceUnitStateTableViewClassName=\
org.apache.pulsar.broker.loadbalance.extensions.channel.ServiceUnitStateTableViewImpl
managedLedgerStorageClassName=org.apache.pulsar.broker.ManagedLedgerClientFactory
narExtractionDirectory=/tmp
offloadersDirectory=./offloaders
packagesManagementStorageProvider=\
org.apache.pulsar.packages.management.storage.bookkeeper.BookKeeperPackagesStorageProvider
protocolHandlerDirectory=./protocols
pulsarResourcesExtendedClassName=org.apache.pulsar.broker.DefaultPulsarResourcesExtended
resourceUsageTransportClassName=
schemaRegistryCompatibilityCheckers=org.apache.pulsar.broker.service.schema.ExternalSchemaCompatibilityCheck,\
org.apache.pulsar.broker.service.schema.ProtobufNativeSchemaCompatibilityCheck,\
org.apache.pulsar.broker.service.schema.JsonSchemaCompatibilityCheck,\
org.apache.pulsar.broker.service.schema.AvroSchemaCompatibilityCheck
schemaRegistryStorageClassName=\
org.apache.pulsar.broker.service.schema.BookkeeperSchemaStorageFactory
*topicFactoryClassName=
topicPoliciesServiceClassName=org.apache.pulsar.broker.service.SystemTopicBasedTopicPoliciesService
transactionBufferProviderClassName=\
org.apache.pulsar.broker.transaction.buffer.impl.TopicTransactionBufferProvider
transactionMetadataStoreProviderClassName=\
org.apache.pulsar.transaction.coordinator.impl.MLTransactionMetadataStoreProvider
transactionPendingAckStoreProviderClassName=\
org.apache.pulsar.broker.transaction.pendingack.impl.MLPendingAckStoreProvider

#! Regions of the configuration store are not kept in step by messages.
*configurationMetadataSyncEventTopic=
*metadataSyncEventTopic=

#! A broker without a quorum of ZooKeeper's servers behind it serves nothing from metadata.
metadataStoreAllowReadOnlyOperations=false

#! Changes wait for the answer to those before to go to ZooKeeper together, not for a time.
metadataStoreBatchingMaxDelayMillis=5

#! What is cached of the metadata is watched, and never thrown away by age.
metadataStoreCacheExpirySeconds=300

#! The broker is one event loop: its clients of ZooKeeper and BookKeeper have no threads.
bookkeeperClientNumIoThreads=4
bookkeeperClientNumWorkerThreads=2
bookkeeperClientSeparatedIoThreadsEnabled=false
metadataStoreSerDesThreads=1

#! There is one connection to a bookie, over which all requests go.
bookkeeperNumberOfChannelsPerBookie=16

#! A ledger that finds too few bookies in its groups takes others, rather than none.
bookkeeperClientMinAvailableBookiesInIsolationGroups=
strictBookieAffinityEnabled=false

#! Every bookie that failed often is put into quarantine, by each broker.
bookkeeperClientQuarantineRatio=1.0

#! Bookies are not asked for their free space, which only protocol 3 can tell.
bookkeeperClientGetBookieInfoIntervalSeconds=86400
bookkeeperClientGetBookieInfoRetryIntervalSeconds=60
bookkeeperDiskWeightBasedPlacementEnabled=false

#! Entries go to bookies by protocol 2; protocol 3 is for TLS and explicit last add confirmed alone.
*bookkeeperUseV2WireProtocol=true

#! Who owns what is kept as ModularLoadManagerImpl keeps it; another load manager would not see it.
*loadManagerClassName=org.apache.pulsar.broker.loadbalance.impl.ModularLoadManagerImpl

#! What is under way to bookies is bounded in bytes, not in requests.
bookkeeperClientThrottleValue=0

#! The client of BookKeeper has no statistics of its own to be exposed or logged.
bookkeeperClientExposeStatsToPrometheus=false
bookkeeperClientLimitStatsLogging=true

#x Keys and certificates are read as PEM, without a password.
bookkeeperTLSKeyFileType=PEM
bookkeeperTLSKeyStorePasswordPath=
bookkeeperTLSProviderFactoryClass=org.apache.bookkeeper.tls.TLSContextFactory
bookkeeperTLSTrustCertTypes=PEM
bookkeeperTLSTrustStorePasswordPath=

#! Certificates are read anew for each connection to a bookie.
bookkeeperTlsCertFilesRefreshDurationSeconds=300

#x Bookies are spoken to without authentication.
bookkeeperClientAuthenticationParameters=
bookkeeperClientAuthenticationParametersName=
bookkeeperClientAuthenticationPlugin=

# Belongs to parts of a bookie that are built differently here.
allocatorExitOnOutOfMemory=
allocatorLeakDetectionPolicy=Disabled
allocatorOutOfMemoryPolicy=FallbackToHeap
allocatorPoolingConcurrency=4
allocatorPoolingPolicy=PooledDirect
allowEphemeralPorts=false
allowLoopback=false
allowMultipleDirsUnderSameDiskPartition=true
allowStorageExpansion=false
auditorAcquireConcurrentOpenLedgerOperationsTimeOutMSec=
auditorLedgerVerificationPercentage=0
auditorMaxNumberOfConcurrentOpenLedgerOperations=500
auditorPeriodicBookieCheckInterval=86400
auditorPeriodicCheckInterval=604800
auditorPeriodicPlacementPolicyCheckInterval=0
auditorReplicasCheckInterval=
autoRecoveryDaemonEnabled=false
bookieDeathWatchInterval=
bookieId=
bookiePort=3181
byteBufAllocatorSizeInitial=
byteBufAllocatorSizeMax=
byteBufAllocatorSizeMin=
closeChannelOnResponseTimeout=false
compactionMaxOutstandingRequests=100000
compactionRate=1000
compactionRateByBytes=1000000
compactionRateByEntries=1000
dataIntegrityChecking=
dataIntegrityStampMissingCookies=
dbStorage_directIOEntryLoggerMaxFdCacheTimeSeconds=
dbStorage_directIOEntryLoggerReadBufferSizeMB=
dbStorage_directIOEntryLoggerTotalReadBufferSizeMB=
dbStorage_directIOEntryLoggerTotalWriteBufferSizeMB=
dbStorage_maxThrottleTimeMs=
dbStorage_readAheadCacheBatchBytesSize=
dbStorage_readAheadCacheBatchSize=
dbStorage_rocksDB_blockCacheSize=
dbStorage_rocksDB_blockSize=
dbStorage_rocksDB_bloomFilterBitsPerKey=
dbStorage_rocksDB_checksum_type=
dbStorage_rocksDB_format_version=
dbStorage_rocksDB_logLevel=
dbStorage_rocksDB_logPath=
dbStorage_rocksDB_lz4CompressionEnabled=
dbStorage_rocksDB_maxSizeInLevel1MB=
dbStorage_rocksDB_numFilesInLevel0=
dbStorage_rocksDB_numLevels=
dbStorage_rocksDB_sstSizeInMB=
dbStorage_rocksDB_writeBufferSizeMB=
desiredNumZonesPerWriteQuorum=3
disableServerSocketBind=false
diskCheckInterval=10000
diskUsageLwmThreshold=
diskUsageThreshold=0.95
diskUsageWarnThreshold=0.9
enableHealthCheck=
enableLocalTransport=false
enableStatistics=
enableTaskExecutionStats=false
enforceMinNumFaultDomainsForWrite=false
enforceMinNumRacksPerWriteQuorum=false
enforceStrictZoneawarePlacement=true
entryFormatterClass=class org.apache.bookkeeper.util.StringEntryFormatter
entryLocationCompactionInterval=-1
entryLocationRocksdbConf=conf/entry_location_rocksdb.conf
entryLogFilePreallocationEnabled=
entryLogPerLedgerCounterLimitsMultFactor=10
entryLogPerLedgerEnabled=false
entrylogMapAccessExpiryTimeInSeconds=300
extraServerComponents=
fileInfoCacheInitialCapacity=5000
fileInfoFormatVersionToWrite=1
fileInfoMaxIdleTime=0
flushEntrylogBytes=
forceAllowCompaction=false
forceReadOnlyBookie=false
gcEntryLogMetadataCacheEnabled=false
gcEntryLogMetadataCachePath=
gcMetadataOpRateLimit=1000
gcOverreplicatedLedgerMaxConcurrentRequests=1000
gcOverreplicatedLedgerWaitTime=
httpServerEnabled=false
httpServerHost=0.0.0.0
httpServerPort=8080
ignoreExtraServerComponentsStartupFailures=false
ignoreLocalNodeInPlacementPolicy=false
inFlightReadEntryNumInLedgerChecker=-1
indexDirectories=
isForceGCAllowWhenNoSpace=false
isThrottleByBytes=false
journalAlignmentSize=512
journalChannelProvider=org.apache.bookkeeper.bookie.DefaultFileChannelProvider
journalDirectories=
journalFormatVersionToWrite=6
journalMaxMemorySizeMb=301
journalPageCacheFlushIntervalMSec=1000
journalPreAllocSizeMB=16
journalQueueSize=10000
journalRemoveFromPageCache=
journalWriteBufferSizeKB=64
ledgerDirectories=
ledgerIdFormatterClass=class org.apache.bookkeeper.util.LedgerIdFormatter$LongLedgerIdFormatter
ledgerManagerFactoryDisableClassCheck=
ledgerManagerType=
ledgerMetadataRocksdbConf=conf/ledger_metadata_rocksdb.conf
ledgerMetadataVersion=
ledgerStorageClass=org.apache.bookkeeper.bookie.SortedLedgerStorage
limitStatsLogging=true
listeningInterface=
localConsistencyCheckOnStartup=false
localScrubInterval=
localScrubRateLimit=60.0
lockReleaseOfFailedLedgerGracePeriod=300000
lostBookieRecoveryDelay=0
majorCompactionMaxTimeMillis=-1
maxAddsInProgressLimit=0
maxBatchReadSize=5242880
maxOperationNumbersInSingleRocksdbWriteBatch=
maxReadsInProgressLimit=0
maximumNumberOfActiveEntryLogs=500
metadataServiceUri=
metastoreImplClass=
metastoreMaxEntriesPerScan=50
minNumRacksPerWriteQuorum=2
minNumZonesPerWriteQuorum=2
minUsableSizeForEntryLogCreation=1073741824
minUsableSizeForHighPriorityWrites=1073741824
minUsableSizeForIndexFileCreation=104857600
minorCompactionMaxTimeMillis=-1
nettyMaxFrameSizeBytes=5242880
openFileLimit=20000
openLedgerRereplicationGracePeriod=30000
pageLimit=-1
pageSize=8192
persistBookieStatusEnabled=false
preserveMdcForTaskExecution=false
readBufferSizeBytes=
readOnlyModeEnabled=true
readOnlyModeOnAnyDiskFullEnabled=false
registrationManagerClass=class org.apache.bookkeeper.discover.ZKRegistrationManager
repairedPlacementPolicyNotAdheringBookieEnabled=
replicationRateByBytes=-1
requestTimerNumTicks=1024
requestTimerTickDurationMs=10
rereplicationEntryBatchSize=10
rwRereplicateBackoffMs=5000
sanityCheckMetricsEnabled=false
serverSockKeepalive=true
serverTcpLinger=
serverTcpNoDelay=true
serverWriteBufferHighWaterMark=524288
serverWriteBufferLowWaterMark=393216
shadedLedgerManagerFactoryClassPrefix=dlshade.
skipListArenaChunkSize=4194304
skipListArenaMaxAllocSize=131072
skipListSizeLimit=67108864
skipReplayJournalInvalidRecord=false
sortedLedgerStorageEnabled=true
statsProviderClass=class org.apache.bookkeeper.stats.NullStatsProvider
storeSystemTimeAsLedgerCreationTime=
storeSystemTimeAsLedgerUnderreplicatedMarkTime=true
underreplicatedLedgerRecoveryGracePeriod=0
useHostNameAsBookieID=false
useShortHostName=false
useTargetEntryLogSizeForGc=false
verifyMetadataOnGC=false
waitTimeoutOnResponseBackpressureMs=
writeBufferSizeBytes=
zkLedgersRootPath=/ledgers
zkRequestRateLimit=0.0
zkRetryBackoffMaxMs=10000
zkRetryBackoffMaxRetries=2147483647
zkRetryBackoffStartMs=10000
zkServers=
zkTimeout=10000

# A receipt always follows the sync of what it confirms.
journalAdaptiveGroupWrites=true
journalBufferedEntriesThreshold=0
journalBufferedWritesThreshold=524288
journalFlushWhenQueueEmpty=false
journalMaxGroupWaitMSec=2
journalSyncData=true
journalWriteData=true

# Of parts of balancing that are fixed here, or of ExtensibleLoadManagerImpl, or of AvgShedder.
*flowOrQpsDifferenceThresholdPercentage=10
*loadBalanceSheddingDelayInSeconds=180
*loadBalancerAverageResourceUsageDifferenceThresholdPercentage=10
*loadBalancerAvgShedderHighThreshold=40
*loadBalancerAvgShedderHitCountHighThreshold=2
*loadBalancerAvgShedderHitCountLowThreshold=8
*loadBalancerAvgShedderLowThreshold=15
loadBalancerBrokerComfortLoadLevelPercentage=65
*loadBalancerBrokerLoadDataTTLInSeconds=1800
*loadBalancerBrokerLoadTargetStd=0.25
loadBalancerBrokerUnderloadedThresholdPercentage=50
*loadBalancerDebugModeEnabled=false
loadBalancerEnabled=true
loadBalancerInFlightServiceUnitStateWaitingTimeInMillis=30000
loadBalancerLoadPlacementStrategy=org.apache.pulsar.broker.loadbalance.impl.LeastLongTermMessageRate
*loadBalancerMaxNumberOfBrokerSheddingPerCycle=3
*loadBalancerMaxNumberOfBundlesToSplitPerCycle=10
*loadBalancerMemoryResourceWeight=0.0
loadBalancerMultiPhaseBundleUnload=true
*loadBalancerNamespaceBundleSplitConditionHitCountThreshold=3
loadBalancerOverrideBrokerNics=
loadBalancerPlacementStrategy=leastLoadedServer
*loadBalancerServiceUnitStateMaxConcurrentOverrides=64
loadBalancerServiceUnitStateMonitorIntervalInSeconds=60
loadBalancerServiceUnitStateTombstoneDelayTimeInSeconds=3600
*loadBalancerServiceUnitTableViewSyncer=None
*loadBalancerSheddingConditionHitCountThreshold=3
loadBalancerSplitIntervalMinutes=1
*loadBalancerTransferEnabled=true
*namespaceBundleUnloadingTimeoutMs=60000
*supportedNamespaceBundleSplitAlgorithms=range_equally_divide,topic_count_equally_divide,\
specified_positions_divide,flow_or_qps_equally_divide
topicBundleAssignmentStrategy=org.apache.pulsar.common.naming.ConsistentHashingTopicBundleAssigner

#x As a client of other brokers this one has the TLS versions and ciphers of OpenSSL.
brokerClientTlsCiphers=
brokerClientTlsProtocols=

#x As a client of other brokers this one takes PEM files (brokerClientTrustCertsFilePath and \
others); of a JKS store they are made with: keytool -importkeystore -srckeystore STORE.jks \
-destkeystore STORE.p12 -deststoretype PKCS12 && openssl pkcs12 -in STORE.p12 -nodes -out STORE.pem.
brokerClientTlsEnabledWithKeyStore=false
brokerClientTlsKeyStore=
brokerClientTlsKeyStorePassword=
brokerClientTlsKeyStoreType=JKS
brokerClientTlsTrustStore=
brokerClientTlsTrustStorePassword=
brokerClientTlsTrustStoreType=JKS

#x TLS is that of OpenSSL: there is no other provider, and Java's classes can't be loaded.
brokerClientSslFactoryPlugin=org.apache.pulsar.common.util.DefaultPulsarSslFactory
brokerClientSslFactoryPluginParams=
brokerClientSslProvider=
sslFactoryPlugin=org.apache.pulsar.common.util.DefaultPulsarSslFactory
sslFactoryPluginParams=
tlsProvider=
webServiceTlsProvider=Conscrypt

#x Ports with TLS are opened by brokerServicePortTls and webServicePortTls.
tlsEnabled=false

#x SASL and Kerberos are not offered.
inflightSaslContextExpiryMs=30000
kinitCommand=/usr/bin/kinit
maxInflightSaslContext=50000
saslJaasBrokerSectionName=
saslJaasClientAllowedIds=.*pulsar.*
saslJaasServerRoleTokenSignerSecretPath=
saslJaasServerSectionName=PulsarBroker

#x Athenz is not offered.
athenzDomainNames=

#x There is no port of a bookie, and no HTTP server of one: leave out what protects them.
authorizedRoles=
bookieAuthProviderFactoryClass=
httpServerKeyStorePassword=
httpServerKeyStorePath=
httpServerTlsEnable=false
httpServerTrustStorePassword=
httpServerTrustStorePath=
permittedStartupUsers=
tlsCertFilesRefreshDurationSeconds=
tlsCertificatePath=
tlsClientAuthentication=
tlsEnabledCipherSuites=
tlsEnabledProtocols=
tlsKeyStorePasswordPath=
tlsProviderFactoryClass=
tlsTrustStorePasswordPath=

#x A method is always checked by its own provider.
strictAuthMethod=false

# Nothing is offloaded to other storage.
gcsManagedLedgerOffloadBucket=
gcsManagedLedgerOffloadMaxBlockSizeInBytes=134217728
gcsManagedLedgerOffloadReadBufferSizeInBytes=1048576
gcsManagedLedgerOffloadRegion=
gcsManagedLedgerOffloadServiceAccountKeyFile=
managedLedgerDataReadPriority=tiered-storage-first
*managedLedgerInactiveOffloadedLedgerEvictionTimeSeconds=600
managedLedgerOffloadAutoTriggerSizeThresholdBytes=-1
managedLedgerOffloadBucket=
managedLedgerOffloadDeletionLagMs=14400000
managedLedgerOffloadDriver=
managedLedgerOffloadMaxBlockSizeInBytes=
managedLedgerOffloadPrefetchRounds=1
managedLedgerOffloadReadBufferSizeInBytes=
managedLedgerOffloadRegion=
managedLedgerOffloadServiceEndpoint=
managedLedgerOffloadThresholdInSeconds=-1
managedLedgerUnackedRangesOpenCacheSetEnabled=true
s3ManagedLedgerOffloadBucket=
s3ManagedLedgerOffloadCredentialId=
s3ManagedLedgerOffloadCredentialSecret=
s3ManagedLedgerOffloadMaxBlockSizeInBytes=67108864
s3ManagedLedgerOffloadReadBufferSizeInBytes=1048576
s3ManagedLedgerOffloadRegion=
s3ManagedLedgerOffloadRole=
s3ManagedLedgerOffloadRoleSessionName=pulsar-s3-offload
s3ManagedLedgerOffloadServiceEndpoint=
triggerOffloadOnTopicLoad=false

# There is no geo-replication in this version.
*brokerReplicationInactiveThresholdSeconds=86400
createTopicToRemoteClusterForReplication=true
*dispatchThrottlingRatePerReplicatorInByte=0
*dispatchThrottlingRatePerReplicatorInMsg=0
enableReplicatedSubscriptions=true
replicatedSubscriptionsSnapshotFrequencyMillis=1000
replicatedSubscriptionsSnapshotMaxCachedPerSubscription=30
replicatedSubscriptionsSnapshotTimeoutSeconds=30
replicationConnectionsPerBroker=16
replicationMetricsEnabled=true
replicationPolicyCheckDurationSeconds=600
*replicationProducerQueueSize=1000
*replicationStartAt=latest
replicatorPrefix=pulsar.repl

# There are no transactions in this version.
maxActiveTransactionsPerCoordinator=0
transactionBufferClientMaxConcurrentRequests=1000
transactionBufferClientOperationTimeoutInMills=3000
transactionBufferSegmentedSnapshotEnabled=false
transactionBufferSnapshotMaxTransactionCount=1000
transactionBufferSnapshotMinTimeInMillis=5000
transactionBufferSnapshotSegmentSize=262144
*transactionLogBatchedWriteEnabled=false
transactionLogBatchedWriteMaxDelayInMillis=1
transactionLogBatchedWriteMaxRecords=512
transactionLogBatchedWriteMaxSize=4194304
*transactionPendingAckBatchedWriteEnabled=false
transactionPendingAckBatchedWriteMaxDelayInMillis=1
transactionPendingAckBatchedWriteMaxRecords=512
transactionPendingAckBatchedWriteMaxSize=4194304
transactionPendingAckLogIndexMinLag=500
useTransactionalCompaction=false

# TRACE and TRACK are answered 405 anyway.
disableHttpDebugMethods=false

# Fields that are not known are always ignored, as by default.
*httpRequestsFailOnUnknownPropertiesEnabled=false

# Requests are not counted by the second: each connection has one at a time.
httpRequestsLimitEnabled=false
httpRequestsMaxPerSecond=100.0

# Answers over HTTP are never compressed.
httpServerGzipCompressionExcludedPaths=

# A connection has one request at a time, so that maxHttpServerConnections bounds requests, too.
maxConcurrentHttpRequests=1024

# The request log has the client's address alone.
webServiceLogDetailedAddresses=

# A WebSocket has a client of its own, connected within the process: its memory is bounded for each.
webSocketConnectionsPerBroker=2
webSocketPulsarClientMemoryLimitInMB=0

# Set by the program that starts a broker of Apache Pulsar, not by its users.
isRunningStandalone=false

# Properties of topics are no labels of metrics in this version.
allowedTopicPropertyKeysForMetrics=
exposeCustomTopicMetricLabelsEnabled=false

# Producers have one line or object each, as they are.
aggregatePublisherStatsByProducerName=false
exposePublisherStats=true

# The metrics that these switch or tune are not there, see docs/METRICS.md.
*exposeBundlesMetricsInPrometheus=false
exposeManagedCursorMetricsInPrometheus=false
exposeManagedLedgerMetricsInPrometheus=true
exposeSubscriptionBacklogSizeInPrometheus=false
healthCheckMetricsUpdateTimeInSeconds=-1
managedLedgerPrometheusStatsLatencyRolloverSeconds=60

# Backlogs are exact at no further cost.
exposePreciseBacklogInPrometheus=false

# All rates have the window of `statsUpdateFrequencyInSecs`, which begins with the broker.
managedLedgerStatsPeriodSeconds=60
statsUpdateInitialDelayInSecs=60

# A page of metrics is written as it is made, as fast as its reader takes it, and never kept.
metricsBufferResponse=false
metricsServletTimeoutMs=30000

# Functions, packages and protocol handlers are parts of Apache Pulsar that are not served.
additionalServlets=
enablePackagesManagement=false
functionsWorkerEnablePackageManagement=false
functionsWorkerEnabled=false
functionsWorkerServiceNarPackage=
messagingProtocols=
packagesManagementLedgerRootPath=/ledgers
packagesReplicas=1

# There are no payload processors.
brokerEntryPayloadProcessors=

# A topic list is not copied on its way to the socket: it counts once, as memory of the heap.
maxTopicListInFlightDirectMemSizeMB=100
maxTopicListInFlightDirectMemSizePermitsAcquireQueueSize=10000
maxTopicListInFlightDirectMemSizePermitsAcquireTimeoutMillis=25000

# Connections bound their buffers in their own way.
pulsarChannelPauseReceivingCooldownMs=5000
pulsarChannelPauseReceivingCooldownRateLimitPeriodMs=10
pulsarChannelPauseReceivingCooldownRateLimitPermits=5
pulsarChannelPauseReceivingRequestsIfUnwritable=false
pulsarChannelWriteBufferHighWaterMark=65536
pulsarChannelWriteBufferLowWaterMark=32768

# No topic waits for the policies of its namespace to be read: each is served by its own copy.
*topicPoliciesCacheInitTimeoutSeconds=60

# Any schema is compatible in a system topic, whose writers are brokers.
systemTopicSchemaCompatibilityStrategy=ALWAYS_COMPATIBLE

# All acknowledgements are persisted, however many holes they leave: nothing has to pause.
*dispatcherPauseOnAckStatePersistentEnabled=false
persistentUnackedRangesWithMultipleEntriesEnabled=false

# Each type of subscription has one dispatcher here.
*subscriptionKeySharedUseClassicPersistentImplementation=false
*subscriptionSharedUseClassicPersistentImplementation=false

# What it tunes is not there, or built differently.
bindAddresses=
bootstrapNamespaces=
cacheEvictionByExpectedReadCount=true
cacheEvictionByMarkDeletedPosition=false
*clientLibraryVersionCheckEnabled=false
clusterMigrationAutoResourceCreation=false
clusterMigrationCheckDurationSeconds=0
*dispatcherReadFailureBackoffMandatoryStopTimeInMs=0
dispatcherRetryBackoffInitialTimeInMs=1
dispatcherRetryBackoffMaxTimeInMs=10
enableNamespaceIsolationUpdateOnTime=false
enableRunBookieAutoRecoveryTogether=false
enableRunBookieTogether=false
fileSystemProfilePath=
fileSystemURI=
lazyCursorRecovery=false
lookupPropertyPrefix=lookup.
managedLedgerAddEntryTimeoutSeconds=0
managedLedgerCacheCopyEntries=false
*managedLedgerCacheEvictionExtendTTLOfEntriesWithRemainingExpectedReadsMaxTimes=5
*managedLedgerCacheEvictionExtendTTLOfRecentlyAccessed=true
managedLedgerContinueCachingAddedEntriesAfterLastActiveCursorLeavesMillis=
managedLedgerCursorPositionFlushSeconds=60
*managedLedgerCursorResetLedgerCloseTimestampMaxClockSkewMillis=60000
managedLedgerDeleteMaxConcurrentRequests=1000
*managedLedgerForceRecovery=false
*managedLedgerMaxBacklogBetweenCursorsForCaching=1000
managedLedgerMaxReadsInFlightPermitsAcquireQueueSize=50000
managedLedgerMaxReadsInFlightPermitsAcquireTimeoutMillis=60000
managedLedgerMaxReadsInFlightSizeInMB=0
managedLedgerMetadataOperationsTimeoutSeconds=60
*managedLedgerMinimumBacklogCursorsForCaching=0
*managedLedgerMinimumBacklogEntriesForCaching=1000
managedLedgerNewEntriesCheckDelayInMillis=10
managedLedgerPersistIndividualAckAsLongArray=true
managedLedgerReadEntryTimeoutSeconds=0
*managedLedgerTraceTaskExecution=true
maxMessageSizeCheckIntervalInSeconds=60
maxSecondsToClearTopicNameCache=7200
*preferLaterVersions=false
*resourceUsageTransportPublishIntervalInSecs=60
schemaJsonAllowLegacyJacksonFormat=false
*schemaLedgerForceRecovery=false
*skipBrokerShutdownOnOOM=false
strictTopicNameEnabled=false
*strictlyVerifySubscriptionName=false
topicFencingTimeoutSeconds=0
*topicNameCacheMaxCapacity=100000
topicPolicyListenerReplayEnabled=false
topicsPatternRegexImplementation=RE2J_WITH_JDK_FALLBACK
*unblockStuckSubscriptionEnabled=false

# Rates are kept exactly, by the time that has passed: nothing ticks.
*brokerPublisherThrottlingTickTimeMillis=50
preciseTopicPublishRateLimiterEnable=false
*topicPublisherThrottlingTickTimeMillis=10

"""
