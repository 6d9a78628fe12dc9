"""Typed calls of the administration, for the command line and for tests.

Third-party packages it may import: none.
"""
