"""The REST API of stored messages: read one by one, decoded, found by time, and counted.

In: requests for entries of a topic or of a subscription's backlog. Out: the classic answers of
Apache Pulsar, whose clients take them apart themselves, and readable ones of our own. Nothing here
acknowledges, moves a cursor or changes what is stored.
"""
