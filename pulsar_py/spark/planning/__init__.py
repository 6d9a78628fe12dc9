"""Plans of queries: topics, their ledgers, ranges of positions, and the pieces that tasks get.

In: options, filters, and offsets of a checkpoint. Out: `PlannedPiece`s for tasks and the next
offset of a stream; data loss as an error or a warning. It knows nothing of rows and values.

Third-party packages it may import: none.
"""
