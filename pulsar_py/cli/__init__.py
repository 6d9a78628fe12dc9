"""The command `pulsar-py`; every command imports what it needs inside itself.

Third-party packages it may import: click, protobuf, rich, uvloop.
"""
