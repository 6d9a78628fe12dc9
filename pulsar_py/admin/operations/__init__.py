"""The REST API for operators: bundles, whole backlogs, stored records, load, isolation.

In: requests about a namespace's or the cluster's inner state. Out: that state, or a change of it
that clients need not notice. What belongs to parts that this broker does not have is answered as
Apache Pulsar does without them.

Third-party packages it may import: cryptography, msgspec.
"""
