"""Messages and message ids as applications get them, and checks of applications' arguments.

In: an entry's metadata and bytes, or arguments of public calls. Out: `Message`, message ids with
their topic, or an error that names the argument.

Third-party packages it may import: none.
"""
