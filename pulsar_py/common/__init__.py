"""What all layers share: errors, values such as positions and names, and the edges to the machine.

Values are pure. The edges are `clock`, `tasks` and the disks; nothing else reads time, starts tasks
or opens files. Third-party packages it may import: protobuf, crc32c, pyroaring, aiofiles.
"""
