"""Tasks of a read: the messages of one planned piece, as record batches.

In: a `PlannedPiece`, and the columns of the topic's values. Out: Arrow record batches, cut by
bytes. Memory is bounded by the queue of the consumer, what is read ahead, and one batch.

Third-party packages it may import: pyarrow, protobuf.
"""
