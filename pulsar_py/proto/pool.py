"""The descriptor pool that holds our messages, apart from protobuf's process-wide one.

A program that loads its own `PulsarApi.proto` (the official Python client does) would otherwise
collide with ours by file name.
"""

from google.protobuf.descriptor_pool import DescriptorPool

POOL = DescriptorPool()
