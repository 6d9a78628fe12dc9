"""Files: the interface that everything else takes, and its disks: the machine's and one in memory.

Comes in: paths relative to a disk's root, buffers to write. Goes out: bytes, and errors of files.
Simulated disks that lose and tear what was written are in `testing`. Nobody else opens files.
"""
