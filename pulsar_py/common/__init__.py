"""Parts that all packages share: errors, values such as positions and names, and edges.

In and out: plain values. The edges are `clock`, `tasks`, the disks, `http_client`, `tls` and
`loop_thread`: no other module reads the time, starts tasks, opens files, sends HTTP requests or
makes TLS contexts. Nothing here knows commands, ledgers or topics. Third-party packages it may
import: protobuf, crc32c, pyroaring, aiofiles.
"""
