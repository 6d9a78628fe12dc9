"""Producers of a topic: admission, deduplication and receipts.

In: producer requests and SENDs, as method calls of a connection. Out: entries, by the append
function that the topic gives each producer, and receipts in the order of the SENDs. What producers
need of their topic are the protocols `ProducerTopic` and `ProducersOwner`.
"""
