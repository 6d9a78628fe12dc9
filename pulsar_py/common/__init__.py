"""Parts that all packages share: errors, values such as positions and names, and edges.

In and out: plain values. The edges have rooms: `loops` has the time, tasks and threads, `disks` the
files, `network` HTTP requests and TLS contexts; no other module touches these. Nothing here knows
commands, ledgers or topics. Third-party packages it may import: protobuf, msgspec, crc32c,
pyroaring, aiofiles, google-re2.
"""
