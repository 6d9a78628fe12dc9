"""Producers of a topic: who may publish, which messages are duplicates, what is answered.

In: producer requests and SENDs, as method calls of a connection. Out: entries, by the append
function that the topic gives each producer, and receipts in the order of the SENDs. What producers
need of their topic are the protocols `ProducerTopic` and `ProducersOwner`.
"""
