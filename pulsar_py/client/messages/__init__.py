"""Messages and message ids as applications get them, and the checks of what applications give.

In: an entry's metadata and bytes, or arguments of the public calls. Out: `Message`, the ids that
know their topic, or an error that names the argument.

Third-party packages it may import: none.
"""
