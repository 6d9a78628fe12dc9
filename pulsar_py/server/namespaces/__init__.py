"""Namespaces: the bundles that this broker owns, and lookups of a topic's owner.

In: names of topics from connections, REST and the topic registry. Out: ephemeral records of owned
bundles in the metadata store, answers to lookups, and calls to close the topics of lost bundles.
"""
