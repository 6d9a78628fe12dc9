"""Consumers of several topics, of the partitions of one, or of all that match a pattern.

In: names of topics, and the broker's partition counts and lists of topics. Out: the messages of all
parts through one `receive`; a call about a message goes to the `Consumer` that received it.

Third-party packages it may import: none.
"""
