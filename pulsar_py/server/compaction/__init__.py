"""Compaction: keeps the newest message of each key of a topic in a ledger, and reads it from there.

In: the topic's managed ledger, and the ledger store. Out: `TopicCompaction`, which a topic owns,
and the `EntrySource` that a subscription with `readCompacted` reads from. `keyed_messages` says
what an entry holds, `latest_messages` which of its messages stay, `compactor` reads and writes.
"""
