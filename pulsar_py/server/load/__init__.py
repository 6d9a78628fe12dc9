"""The brokers of one cluster: registration, the leader, load reports, placement of bundles.

In: the metadata store, this broker's addresses and load. Out: the other brokers' reports, the
leader, and a choice of a broker for a bundle without owner. It knows no ownership records.
"""
