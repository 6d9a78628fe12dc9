"""Consumers of several topics, of the partitions of one, or of all that match a pattern.

In: names of topics, partition counts and lists that the broker tells. Out: the messages of all
parts through one `receive`; each call about a message goes to the `Consumer` that it came from.

Third-party packages it may import: none.
"""
