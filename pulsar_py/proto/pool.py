"""The descriptor pool that holds our messages, apart from protobuf's process-wide one.

A program that loads its own `PulsarApi.proto` (the official Python client does) would otherwise
collide with ours by file name.

The class of a message is made when it is first named: a process uses few of the two hundred, and a
broker that nobody talks to hardly one.

Where protobuf is compiled, pool and classes are made by its compiled part. Its Python modules for
that bring the parsers in Python along, which nobody uses then: 20 modules in each process's start.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from google.protobuf.descriptor import Descriptor, FileDescriptor
from google.protobuf.internal import api_implementation
from google.protobuf.message import Message

__all__ = ["POOL", "late_messages", "message_class"]

if TYPE_CHECKING or api_implementation.Type() != "upb":
    from google.protobuf.descriptor_pool import DescriptorPool
    from google.protobuf.message_factory import GetMessageClass

    message_class = GetMessageClass
else:
    from google._upb._message import DescriptorPool, MessageMeta

    def message_class(descriptor: Descriptor) -> type[Message]:
        """The class of a message; the first call makes it, and those of its fields."""
        found = getattr(descriptor, "_concrete_class", None)
        if found is None:
            members = {"DESCRIPTOR": descriptor, "__module__": None}
            found = MessageMeta(descriptor.name, (Message,), members)
            for field in descriptor.fields:
                if field.message_type:
                    message_class(field.message_type)
        return found


POOL = DescriptorPool()


def late_messages(
    module: dict[str, object], file: FileDescriptor
) -> Callable[[str], type[Message]]:
    """The `__getattr__` of a module with the messages of a file; `module` are its globals."""
    descriptors = file.message_types_by_name

    def made(name: str) -> type[Message]:
        descriptor = descriptors.get(name)
        if descriptor is None:
            raise AttributeError(f"module {module['__name__']!r} has no attribute {name!r}")
        found = module[name] = message_class(descriptor)
        return found

    return made
