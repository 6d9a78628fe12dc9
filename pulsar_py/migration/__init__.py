"""Moves all that a broker keeps from one pair of stores into another, while no broker runs.

From the directory of a standalone broker into a cluster on ZooKeeper and BookKeeper, and back. Both
sides have the same keys and the same entries, so what is moved is copied as it is. Where ids of
ledgers can't be kept, they are rewritten everywhere they stand.

What comes in: `Contents` of one side, opened for reading, and a `MoveTarget`. What goes out: the
same in the target, compared entry by entry. `Mover` does it; it can be stopped anywhere, and goes
on where it was.

Third-party packages it may import: msgspec, protobuf.
"""
