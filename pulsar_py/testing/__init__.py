"""Virtual time, simulated disks and networks, and fixtures: shipped, imported by tests only.

Third-party packages it may import: pytest, pytest-asyncio, hypothesis, _typeshed.
"""
